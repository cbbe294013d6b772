#!/usr/bin/env bash
# Installs what is missing, builds Tenon, and installs it: the program, libtenon with its headers (CMake package,
# pkg-config), a menu entry, an icon, and the file type of .tenon projects.
set -euo pipefail

usage() {
  cat <<'TEXT'
packaging/install.sh [--prefix DIR]

  --prefix DIR     where to (default: ~/.local, which needs no root)
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=packaging/packages.sh
source "$here/packaging/packages.sh"

prefix=$HOME/.local
while [ $# -gt 0 ]; do
  case $1 in
    --prefix)
      if [ $# -lt 2 ]; then tenon_say "$1 needs a value"; usage >&2; exit 2; fi
      prefix=$2; shift 2 ;;
    -h | --help) usage; exit 0 ;;
    *) tenon_say "unknown option $1"; usage >&2; exit 2 ;;
  esac
done
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)

tenon_install "${tenon_build_packages[@]}" --optional "${tenon_optional_packages[@]}"

cd "$here"
tenon_say "Building (a few minutes the first time)."
if [ ! -f build/release/build.ninja ]; then
  cmake --preset release -DTENON_TESTS=OFF -DTENON_UNITY=ON </dev/null >&2
fi
tenon_build build/release --target tenon libtenon
cmake --install build/release --prefix "$prefix" --strip </dev/null >&2

# The desktop reads what these make of the new files; where they are missing, it finds out by itself later.
share=$prefix/share
if command -v update-mime-database >/dev/null; then update-mime-database "$share/mime" >&2; fi
if command -v update-desktop-database >/dev/null; then update-desktop-database "$share/applications" >&2; fi
tenon_say "Tenon is in $prefix: $prefix/bin/tenon"
