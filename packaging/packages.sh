# The distribution packages Tenon needs (Debian 12 names), each with the reason it is needed. Sourced by run.sh and
# test.sh.
# shellcheck shell=bash

# What building and running needs: "package|why".
tenon_build_packages=(
  "g++|C++20 compiler"
  "cmake|build description"
  "ninja-build|runs the build"
  "pkg-config|lets CMake find libraries"
  "libfmt-dev|text formatting"
  "nlohmann-json3-dev|JSON"
  "libsqlite3-dev|the project file"
  "libssl-dev|SHA-256 of checkpoints and digests"
  "zlib1g-dev|compressed data sets and traces"
  "libdnnl-dev|matrix products and convolutions"
  "libprotobuf-dev|ONNX files"
  "protobuf-compiler|ONNX files"
  "libonnx-dev|the ONNX schema"
  "liblapacke-dev|linear algebra: cholesky, qr, svd, solve"
  "libkissfft-dev|Fourier transforms"
  "libarchive-dev|shards of data in tar files"
  "libjpeg-dev|JPEG images of data sets"
  "libpng-dev|PNG images of data sets"
  "qt6-base-dev|the window"
  "qt6-base-dev-tools|the window: resource and meta-object compilers"
  "libqt6opengl6-dev|the window: OpenGL canvases"
  "qt6-svg-dev|the window: icons"
  "libgl-dev|the window: OpenGL headers"
  "gettext|the window: its texts in other languages"
  "libimgui-dev|drawing inside the canvases"
  "libfreetype-dev|fonts of the canvases"
  "libgl1-mesa-dri|OpenGL without a graphics card"
)

# What the tests need on top.
tenon_test_packages=(
  "libgtest-dev|test framework"
  "clang-format-14|the sources are as the formatter leaves them"
  "xvfb|a virtual display for the window's tests"
  "xauth|access to the virtual display"
  "python3|runs exported models in ONNX Runtime"
  "python3-venv|a Python environment of our own under build/"
  "libonnx-testdata|the ONNX project's conformance cases"
)

# What makes things faster or nicer; their absence is no failure.
tenon_optional_packages=(
  "dataset-fashion-mnist|70,000 real images to train on"
  "libgif-dev|GIF images of data sets"
  "libwebp-dev|WebP images of data sets"
  "libtiff-dev|TIFF images of data sets"
  "ccache|repeated builds in seconds"
  "mold|faster linking"
  "qt6-translations-l10n|the buttons of Qt's own dialogs in other languages"
)

# What some tests compare with; they are skipped where it is missing.
tenon_peer_packages=(
  "python3-torch|layers, losses, optimizers and views are compared with PyTorch"
  "libsimdjson-dev|the benchmark of large traces times a plain pass of simdjson beside ours"
)

tenon_say() { printf '%s\n' "$*" >&2; }

# tenon_build FOLDER [WORDS of cmake --build]: where a build that compiles several files at a time fails, the files are
# compiled one by one: that only those together have a fault stops nobody.
tenon_build() {
  if cmake --build "$@" </dev/null >&2; then return; fi
  grep -qs 'TENON_UNITY:BOOL=ON' "$1/CMakeCache.txt" || return 1
  tenon_say "Compiling several files at a time failed: once more, one by one."
  cmake -S . -B "$1" -DTENON_UNITY=OFF </dev/null >&2 && cmake --build "$@" </dev/null >&2
}

tenon_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]; }

# tenon_install "package|why"...: says what is missing and why, then installs it. Does nothing where all is there.
# Optional packages (after the word --optional) are skipped where the distribution does not have them.
tenon_install() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    tenon_say "This system has no apt-get: install the counterparts of these packages yourself, then go on."
    printf '  %s\n' "$@" | grep -v -- '--optional' | sed 's/|/: /' >&2
    return 0
  fi
  local entry optional=no missing=() wished=()
  for entry in "$@"; do
    if [ "$entry" = --optional ]; then
      optional=yes
    elif ! tenon_installed "${entry%%|*}"; then
      if [ "$optional" = yes ]; then wished+=("$entry"); else missing+=("$entry"); fi
    fi
  done
  if [ ${#missing[@]} -eq 0 ] && [ ${#wished[@]} -eq 0 ]; then return 0; fi

  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      if [ ${#missing[@]} -eq 0 ]; then return 0; fi
      tenon_say "These packages are missing, and installing them needs root (or sudo):"
      printf '  %s\n' "${missing[@]%%|*}" >&2
      return 1
    fi
    as_root=(sudo)
  fi

  local names=()
  tenon_say "Tenon needs these distribution packages:"
  for entry in "${missing[@]}"; do
    printf '  %-24s %s\n' "${entry%%|*}" "${entry#*|}" >&2
    names+=("${entry%%|*}")
  done
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update </dev/null >&2
  for entry in "${wished[@]}"; do
    if apt-cache show "${entry%%|*}" >/dev/null 2>&1; then
      printf '  %-24s %s (optional)\n' "${entry%%|*}" "${entry#*|}" >&2
      names+=("${entry%%|*}")
    else
      printf '  %-24s not in this distribution; going on without (%s)\n' "${entry%%|*}" "${entry#*|}" >&2
    fi
  done
  if [ ${#names[@]} -eq 0 ]; then return 0; fi
  tenon_say "Installing them now with apt-get."
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${names[@]}" \
    </dev/null >&2
}
