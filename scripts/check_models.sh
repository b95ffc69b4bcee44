#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Exports real models with PyTorch, runs each one split over two devices and compares with PyTorch's
# own outputs. Prints one line a model; exits 1 if any differs. Needs python3-torch and
# python3-torchvision (export_torch.py says so if they are missing).
#
# Usage: scripts/check_models.sh [-d DIR] [-f DEVICE=GLOB] [-t TARGET] [-s STRATEGY] [MODEL...]
#   MODEL  a SPEC of export_torch.py, or a torchvision name; default: the eight models below
#   -d     where exports are kept and found again (default: a folder that is removed at the end)
#   -f     passed to npu-tag --force (default cpu=aten.add*); -f '' forces nothing
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
PATH=$root/build/bin:$PATH
folder='' force='cpu=aten.add*' target=host strategy=convex
while getopts d:f:t:s: option; do
  case $option in
    d) folder=$OPTARG ;;
    f) force=$OPTARG ;;
    t) target=$OPTARG ;;
    s) strategy=$OPTARG ;;
    *) sed -n '3,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- resnet18 resnet50 mobilenet_v2 efficientnet_b0 inception_v3 densenet121 \
  vit_b_16 "$root/testdata/models/bert_base.py:bert_base"
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"

# The first number or word after "KEY": in a report.
field() { grep -o "\"$1\": *[^,}]*" "$2" | head -n 1 | sed 's/.*: *//; s/"//g'; }
# The N-th occurrence of it.
nth_field() { grep -o "\"$1\": *[^,}]*" "$2" | sed -n "$3p" | sed 's/.*: *//; s/"//g'; }

failed=0
printf '%-18s %6s %6s %6s %10s %10s %10s %9s  %s\n' \
  model npu cpu parts transfers 'max abs' 'max rel' 'ms' result
for spec in "$@"; do
  case $spec in
    *:*) ;;
    *) spec=torchvision:$spec ;;
  esac
  name=${spec##*:}
  if [ ! -f "$folder/$name.outputs.safetensors" ]; then
    "$root/scripts/export_torch.py" "$spec" -o "$folder" >"$folder/$name.log" 2>&1 || {
      printf '%-18s export failed: %s\n' "$name" "$(tail -n 1 "$folder/$name.log")"
      failed=1
      continue
    }
  fi
  status=0
  npu-tag --target "$target" ${force:+--force "$force"} -q "$folder/$name.json" |
    npu-partition --strategy "$strategy" -o "$folder/$name.part.json" || status=$?
  if [ "$status" = 0 ]; then
    npu-run --inputs "$folder/$name.inputs.safetensors" --rtol 1e-3 --atol 1e-4 \
      --expect "$folder/$name.outputs.safetensors" "$folder/$name.part.json" \
      >"$folder/$name.report.json" || status=$?
  fi
  report=$folder/$name.report.json
  result=ok
  if [ "$status" != 0 ]; then
    result="exit $status"
    failed=1
  fi
  printf '%-18s %6s %6s %6s %10s %10.1e %10.1e %9s  %s\n' "$name" "$(nth_field nodes "$report" 1)" \
    "$(nth_field nodes "$report" 2)" "$(grep -o '"partition"' "$report" | wc -l)" \
    "$(field transfers "$report")" "$(field max_abs "$report")" "$(field max_rel "$report")" \
    "$(field measured_ms "$report")" "$result"
done
exit "$failed"
