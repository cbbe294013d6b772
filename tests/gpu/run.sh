#!/usr/bin/env bash
# Run on a machine with a GPU, from the folder that pack.sh made: every op and its gradient against the CPU, by Tenon's
# own kernels and by NVIDIA's libraries; training, and templates trained twice to the same digest (of TENON_GPU_DATA, a
# folder with the example data, several); the benchmark, beside PyTorch where a Python there has one and TENON_GPU_PEER
# names the script of its workloads. Ends on a table; the exit status is 1 where something failed. Under nine minutes.
#   run.sh [MODULE]   MODULE: another build of cuda.so, as of the emulated GPU
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LD_LIBRARY_PATH=$here/shared${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export TENON_CUDA_FILE=${1:-$here/lib/tenon/cuda.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rows=() failed=0

row() { rows+=("$(printf '%-6s %-34s %s' "$1" "$2" "$3")"); [[ $1 == ok ]] || failed=1; }
tenon() { "$here/bin/tenon" "$@"; }

# Where NVIDIA's libraries are: the toolkit's folder, and the packages of a Python.
if [[ -z ${TENON_CUDA_LIBRARIES:-} && -z ${1:-} ]]; then
  packages=$(python3 -c 'import glob, nvidia
print(":".join(f for p in nvidia.__path__ for f in glob.glob(p + "/*/lib")))' 2>/dev/null)
  export TENON_CUDA_LIBRARIES=/usr/local/cuda/lib64${packages:+:$packages}
fi
tenon doctor | grep -E 'cuda|processor' || true
real=$(tenon doctor | grep -c -E '^ok  device cuda:' || true)
tenon doctor | grep -q 'Emulated GPU' && real=0

# tested NAME FILTER: tests of test_cuda, and which ops ran on the CPU.
onto_cpu=
tested() {
  local name=$1 out="$work/${1// /_}.txt"
  timeout 200 "$here/bin/test_cuda" --gtest_brief=1 --gtest_filter="$2" >"$out" 2>&1
  local status=$?
  grep -E '^\[  (FAILED|PASSED)' "$out" | sort -u | head -n 40
  onto_cpu+=$(grep -E '^on the CPU' "$out" | awk '{ print $4 }' | sort -u | tr '\n' ' ')
  row "$([[ $status == 0 ]] && echo ok || echo FAILED)" "$name" "$(grep -E '^\[  PASSED' "$out" | tr -d '[]')"
  [[ $status == 0 ]] || grep -B 2 -A 12 -E 'Failure|Error' "$out" | head -n 80
}
TENON_CUDA_LIBRARIES=/nowhere tested "ops, gradients, training" '*'
tested "the same by libraries" \
  'CudaLibraries.*:CudaGraphs.*:CudaWaits.*:CudaProducts.*:CudaTraining.*:*matmul*:*linear*:*conv*:*lstm*:*attention*'

# trained NAME SETTINGS...: a template trained twice, and once in two parts: the same digests, and how fast.
trained() {
  local name=$1 p=$work/$1.tenon step=60
  shift
  tenon new "$p" --template "$name" >/dev/null || { row FAILED "$name" "no project"; return; }
  local begin=$SECONDS
  for run in a b; do
    tenon train "$p" --run $run --device cuda --max-steps $step --set checkpoint_every=20 "$@" >"$work/out.txt" 2>&1 ||
      { tail -n 3 "$work/out.txt"; row FAILED "$name" "run $run"; return; }
  done
  tenon train "$p" --run c --device cuda --max-steps 20 --set checkpoint_every=20 "$@" >"$work/out.txt" 2>&1
  tenon train "$p" --resume c --set max_steps=$step >"$work/out.txt" 2>&1
  local a b c
  a=$(tenon digest "$p" a --step $step) b=$(tenon digest "$p" b --step $step) c=$(tenon digest "$p" c --step $step)
  local said
  said="loss $(tenon metrics "$p" a loss | tail -n 1 | awk '{ print $NF }'), $((SECONDS - begin)) s for three runs"
  if [[ -n $a && ${a%% *} == "${b%% *}" && ${a%% *} == "${c%% *}" ]]; then
    row ok "$name twice and in two parts" "$said"
  else
    row FAILED "$name twice and in two parts" "digests ${a:0:12} ${b:0:12} ${c:0:12}, $said"
  fi
}
trained spirals
for name in byte-gpt byte-lstm fashion-cnn resnet18; do
  tenon templates 2>/dev/null | grep -q "$name" && [[ -d ${TENON_GPU_DATA:-/nowhere} ]] &&
    trained "$name" --set data.dir="$TENON_GPU_DATA"
done

# Reads and writes outside of blocks, on the smallest ops.
if ((real)) && command -v compute-sanitizer >/dev/null; then
  TENON_CUDA_NO_POOL=1 TENON_CUDA_LIBRARIES=/nowhere timeout 90 compute-sanitizer --error-exitcode 9 \
    "$here/bin/test_cuda" --gtest_brief=1 --gtest_filter='*softmax*:*layer_norm*:*index_select*:*conv2d' \
    >"$work/sanitizer.txt" 2>&1
  status=$?
  row "$([[ $status == 0 ]] && echo ok || echo FAILED)" "compute-sanitizer" \
    "$(grep -E 'ERROR SUMMARY' "$work/sanitizer.txt" | tail -n 1), exit status $status"
fi

# figures FILE: "workload metric value" of a benchmark's lines.
figures() { python3 -c 'import json, sys
for line in open(sys.argv[1]):
    if line.startswith("{"):
        j = json.loads(line)
        print(j["workload"] + "." + j["metric"], j["value"])' "$1" | sort; }
if ((real)) && command -v python3 >/dev/null; then
  timeout 150 "$here/bin/tenon" bench --device cuda --seconds 0.3 --json >"$work/tenon.json" 2>"$work/bench.txt"
  status=$?
  row "$([[ $status == 0 ]] && echo ok || echo FAILED)" "tenon bench" "$(wc -l <"$work/tenon.json") figures"
  figures "$work/tenon.json" >"$work/tenon.figures"
  if [[ -f ${TENON_GPU_PEER:-} ]] && python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    timeout 150 python3 "$TENON_GPU_PEER" --device cuda --seconds 0.3 >"$work/torch.json" 2>/dev/null
    figures "$work/torch.json" >"$work/torch.figures"
    echo
    join "$work/tenon.figures" "$work/torch.figures" |
      awk '{ printf "%-44s %14.4g of Tenon %14.4g of PyTorch %8.2f\n", $1, $2, $3, $3 ? $2 / $3 : 0 }'
  else
    awk '{ printf "%-44s %14.4g\n", $1, $2 }' "$work/tenon.figures"
  fi
fi

echo
printf '%s\n' "${rows[@]}"
[[ -z $onto_cpu ]] || echo "run on the CPU behind copies: $(tr ' ' '\n' <<<"$onto_cpu" | sort -u | tr '\n' ' ')"
exit $failed
