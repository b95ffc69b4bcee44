#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Draws the partitions of models as SVG: npu-tag, npu-fuse, npu-partition --dot, and Graphviz.
#
# Usage: scripts/plot.sh [-d DIR] [-t TARGET] [-s STRATEGY] [-p PATTERNS] [-l LEVEL] [-f DEVICE=GLOB] [-x OPTION] [MODEL.json|DRAWING.dot...]
#   -d  folder for MODEL.STRATEGY.dot and .svg (default: the working directory)
#   -t  target (default host)            -s  strategy of npu-partition (default convex)
#   -p  patterns of npu-fuse (default: default; none leaves ops alone)
#   -l  node, group or partition: what a box is (default: by size, as npu-partition --dot-level)
#   -f  passed to npu-tag --force        -x  passed to npu-partition as it is; may be repeated
# Without a model: resnet18 and mobilenet_v2 of testdata/models. A file that ends in .dot is only drawn.
# A document that has tags or groups already keeps neither; use npu-partition --dot for that.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
PATH=$PATH:$root/build/bin
folder=. target=host strategy=convex patterns=default force=() extra=()
while getopts d:t:s:p:l:f:x: option; do
  case $option in
    d) folder=$OPTARG ;;
    t) target=$OPTARG ;;
    s) strategy=$OPTARG ;;
    p) patterns=$OPTARG ;;
    l) extra+=(--dot-level "$OPTARG") ;;
    f) force+=(--force "$OPTARG") ;;
    x) extra+=("$OPTARG") ;;
    *) sed -n '3,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
command -v dot >/dev/null || {
  echo "plot.sh: Graphviz's dot not found; on Debian: apt-get install graphviz" >&2
  exit 1
}
[ $# -gt 0 ] || set -- "$root/testdata/models/resnet18.json" "$root/testdata/models/mobilenet_v2.json"
mkdir -p "$folder"

for model; do
  if [[ $model == *.dot ]]; then
    drawing=$model picture=$folder/$(basename "$model" .dot).svg
  else
    name=$(basename "$model" .json).$strategy
    drawing=$folder/$name.dot picture=$folder/$name.svg
    npu-tag --target "$target" "${force[@]}" "$model" | npu-fuse --patterns "$patterns" |
      npu-partition --strategy "$strategy" "${extra[@]}" --dot "$drawing" -o "$folder/$name.json"
  fi
  # A half-written picture would look like a complete one.
  dot -Tsvg "$drawing" -o "$picture.part"
  mv "$picture.part" "$picture"
  echo "$picture"
done
