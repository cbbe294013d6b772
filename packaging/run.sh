#!/usr/bin/env bash
# Installs what is missing, builds Tenon, and shows it at work: the workbench opens on the Fashion-MNIST example,
# already training. Without a display the same network trains in the terminal.
set -euo pipefail

usage() {
  cat <<'TEXT'
packaging/run.sh [--data DIR] [--template NAME] [--project FILE] [--terminal]

  --data DIR       folder with the four Fashion-MNIST files (IDX, plain or .gz), where the package
                   dataset-fashion-mnist does not exist
  --template NAME  fashion-cnn (default), fashion-mlp or spirals (needs no data)
  --project FILE   where the project is kept (default: ~/Tenon/NAME.tenon)
  --terminal       train in the terminal even where there is a display
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=packaging/packages.sh
source "$here/packaging/packages.sh"

data='' template='' project='' terminal=no
while [ $# -gt 0 ]; do
  case $1 in
    --data | --template | --project)
      if [ $# -lt 2 ]; then tenon_say "$1 needs a value"; usage >&2; exit 2; fi
      case $1 in
        --data) data=$2 ;;
        --template) template=$2 ;;
        --project) project=$2 ;;
      esac
      shift 2 ;;
    --terminal) terminal=yes; shift ;;
    -h | --help) usage; exit 0 ;;
    *) tenon_say "unknown option $1"; usage >&2; exit 2 ;;
  esac
done
if [ -n "$data" ] && [ ! -d "$data" ]; then
  tenon_say "--data $data: no such folder"
  exit 2
fi
if [ -n "$data" ]; then data=$(cd "$data" && pwd); fi

tenon_install "${tenon_build_packages[@]}" --optional "${tenon_optional_packages[@]}"

cd "$here"
tenon_say "Building (a few minutes the first time)."
if [ ! -f build/release/build.ninja ]; then
  cmake --preset release -DTENON_TESTS=OFF -DTENON_UNITY=ON </dev/null >&2
fi
tenon_build build/release --target tenon
tenon=$here/build/release/bin/tenon

images=/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
if [ -z "$template" ]; then
  if [ -n "$data" ] || [ -f "$images" ]; then
    template=fashion-cnn
  else
    template=spirals
    tenon_say "Fashion-MNIST is not here (name its folder with --data DIR): taking the generated example, two spirals."
  fi
fi
if [ -z "$project" ]; then
  project=$HOME/Tenon/$template.tenon
  mkdir -p "$HOME/Tenon"
fi
if [ ! -f "$project" ]; then
  "$tenon" new "$project" --template "$template" ${data:+--data "$data"}
fi

if [ "$terminal" = no ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
  exec "$tenon" "$project" --train
fi

"$tenon" train "$project"
"$tenon" eval "$project"
cat <<TEXT

The project is $project: runs, every metric point and checkpoints.
  go on looking:   $tenon runs $project
  any step again:  $tenon goto $project RUN --step 100
  in the window:   $tenon $project        (on a machine with a display)
TEXT
