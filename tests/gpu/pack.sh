#!/usr/bin/env bash
# Makes one folder of what has to be run on a machine with a GPU: test_cuda, tenon, the CUDA module and the shared
# libraries they need, with run.sh beside them. Nothing has to be installed or built there.
#   tests/gpu/pack.sh BUILD_FOLDER OUT_FOLDER
set -euo pipefail

build=${1:?a build folder with test_cuda, tenon and lib/tenon/cuda.so}
out=${2:?the folder to make}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

module=$build/lib/tenon/cuda.so
[[ -e $module ]] || { echo "$module is not there: build with a CUDA toolkit (packaging/cuda.sh gets one)" >&2; exit 1; }
mkdir -p "$out/bin" "$out/lib/tenon" "$out/shared"
for program in test_cuda tenon; do
  cp "$build/bin/$program" "$out/bin/"
  strip --strip-debug "$out/bin/$program"
done
cp "$module" "$out/lib/tenon/"
strip --strip-debug "$out/lib/tenon/cuda.so"
# The C library is the machine's.
ldd "$build/bin/test_cuda" "$build/bin/tenon" | awk '$3 ~ /^\// { print $3 }' | sort -u |
  grep -v -E '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$out/shared/"
cp "$here/run.sh" "$out/"
du -sh "$out" >&2
