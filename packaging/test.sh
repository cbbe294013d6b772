#!/usr/bin/env bash
# Installs what the tests need, builds, and runs every test; window tests run under a virtual display. Ends on CTest's
# summary, and on what failed. `window-asan` builds and runs the window's tests alone, under the address and
# undefined-behaviour sanitizers; `net-asan` those of them that go through everything: each selection in each state in
# each view, the monkey, the kills. Further words are ctest's (-R, -E).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=packaging/packages.sh
source "$here/packaging/packages.sh"

case ${1:-} in
  '') ;;
  -h | --help)
    echo "packaging/test.sh [PRESET [WORDS of ctest]...]"
    echo "PRESET: dev (default), release, asan, tsan, window-asan, net-asan"
    exit 0
    ;;
  dev | release | asan | tsan | window-asan | net-asan) ;;
  *) tenon_say "unknown preset $1: dev, release, asan, tsan, window-asan or net-asan"; exit 2 ;;
esac
preset=${1:-dev} targets=() tests=()
case $preset in
  window-asan) preset=asan targets=(--target test_window) tests=(-R '^window') ;;
  net-asan) preset=asan targets=(--target test_window) tests=(-R '^window_(states|monkey|kills|replay)') ;;
esac
tests+=("${@:2}")

tenon_install "${tenon_build_packages[@]}" "${tenon_test_packages[@]}" \
  --optional "${tenon_optional_packages[@]}" "${tenon_peer_packages[@]}"

cd "$here"
# ONNX Runtime is the judge of exported models, llama.cpp's package gguf of GGUF files. The tests that need them say so
# and are skipped where they cannot be had.
venv=$here/build/venv
if ! "$venv/bin/python" -c 'import onnxruntime, numpy, onnx' >/dev/null 2>&1; then
  tenon_say "Making a Python environment in build/venv with ONNX Runtime, which judges exported models."
  rm -rf "$venv"
  wanted=(onnxruntime numpy 'onnx<1.23')
  if ! python3 -m venv "$venv" </dev/null >&2 ||
    ! "$venv/bin/pip" install -q --disable-pip-version-check --no-input "${wanted[@]}" </dev/null >&2; then
    tenon_say "ONNX Runtime could not be installed: the tests that need it will be skipped."
    rm -rf "$venv"
  fi
fi

if [[ -x $venv/bin/pip ]] && ! "$venv/bin/python" -c 'import gguf' >/dev/null 2>&1; then
  "$venv/bin/pip" install -q --disable-pip-version-check --no-input gguf </dev/null >&2 ||
    tenon_say "llama.cpp's package gguf could not be installed: the tests that need it will be skipped."
fi

# A build from nothing compiles several files at a time; one that a contributor has already goes on as it is.
unity=ON
grep -qs 'TENON_UNITY:BOOL=OFF' "build/$preset/CMakeCache.txt" && unity=OFF
cmake --preset "$preset" -DTENON_TESTS=ON -DTENON_UNITY="$unity" </dev/null
tenon_build "build/$preset" "${targets[@]}"
status=0
ctest --preset "$preset" "${tests[@]}" -j "$(nproc)" --timeout 900 </dev/null || status=$?
# What failed stands far above the summary: whoever sees the end alone sees why, too. Of each test that failed the lines
# that say so, or else the last ones.
if [[ $status != 0 ]]; then
  tenon_say "What failed (all that was printed: build/$preset/Testing/Temporary/LastTest.log):"
  awk '
    /^[0-9]+\/[0-9]+ Testing: / { name = $3; lines = told = 0; next }
    /: Failure$|^==[0-9]+==ERROR|runtime error:|terminate called|^Error|^the (program ends|window hangs)/ { told = 24 }
    told > 0 { why[lines++] = $0; told-- }
    { last[NR % 15] = $0 }
    /^Test (Failed|timed out)/ {
      print name ": " $0
      for (i = 0; i < lines && i < 60; i++) print "  " why[i]
      for (i = NR - 14; !lines && i <= NR; i++) print "  " last[(i + 15) % 15]
    }' "build/$preset/Testing/Temporary/LastTest.log" | cut -c 1-300 | tail -n 80 >&2 || true
fi
exit "$status"
