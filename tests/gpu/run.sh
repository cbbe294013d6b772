#!/usr/bin/env bash
# Run on a machine with a GPU, from the folder that pack.sh made: every op and its gradient against the CPU, training,
# and a template trained twice to the same digest (of TENON_GPU_DATA, a folder with the example data, several). Ends on a table; the exit status is 1 where something failed. Under
# nine minutes.
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

tenon doctor | grep -E 'cuda|processor' || true

timeout 300 "$here/bin/test_cuda" --gtest_brief=1 >"$work/ops.txt" 2>&1
status=$?
grep -E '^\[  (FAILED|PASSED)' "$work/ops.txt" | sort -u | head -n 40
onto_cpu=$(grep -E '^on the CPU' "$work/ops.txt" | awk '{ print $4 }' | sort -u | tr '\n' ' ')
row "$([[ $status == 0 ]] && echo ok || echo FAILED)" "ops, gradients, training" \
  "$(grep -E '^\[  PASSED' "$work/ops.txt" | tr -d '[]')"
[[ $status == 0 ]] || grep -B 2 -A 12 -E 'Failure|Error' "$work/ops.txt" | head -n 80

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

echo
printf '%s\n' "${rows[@]}"
[[ -z $onto_cpu ]] || echo "run on the CPU behind copies: $onto_cpu"
exit $failed
