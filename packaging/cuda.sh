#!/usr/bin/env bash
# Gets a CUDA toolkit where there is none, from NVIDIA's Python wheels, into build/cuda: what compiles Tenon's CUDA
# module and nothing else (0.3 GB; no driver, which a machine without a GPU does not need). Prints the option that names
# it to CMake. NVIDIA's licence for it is the CUDA toolkit's EULA; nothing of it is passed on with Tenon but the part of
# the runtime that the EULA names for that.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=packaging/packages.sh
source "$here/packaging/packages.sh"

# All of one release: with a newer nvvm beside them, nvcc and ptxas do not understand each other.
wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96
  nvidia-cuda-cccl==13.0.85)

venv=$here/build/cuda
root() { echo "$venv"/lib/python3*/site-packages/nvidia/cu13; }
if [[ ! -x $(root)/bin/nvcc ]]; then
  tenon_say "Getting a CUDA toolkit into build/cuda."
  rm -rf "$venv"
  python3 -m venv "$venv" </dev/null >&2
  "$venv/bin/pip" install -q --disable-pip-version-check --no-input --no-deps "${wheels[@]}" </dev/null >&2
  ln -sfn lib "$(root)/lib64"  # where nvcc and CMake look
fi
"$(root)/bin/nvcc" --version >&2
echo "-DTENON_CUDA_ROOT=$(root)"
