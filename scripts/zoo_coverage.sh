#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How much of torchvision's models and of the models of testdata the first device of a target runs: the
# shares of FLOPs and of nodes, and the partitions of the default placement. Prints one line a model, and
# exits 1 if one has less than the bars: all FLOPs, 99 % of the nodes, and one partition where nothing is
# forced elsewhere. With -r each model runs, too, placed by default and on each device alone, and has to
# give PyTorch's results (1e-3 relative, 1e-4 absolute) and take no longer than the better device by more
# than 5 %: the median of the ratios of three rounds.
#
# Usage: scripts/zoo_coverage.sh [-d DIR] [-t TARGET] [-r RUNS] [-k] [-l] [MODEL...]
#   MODEL  a SPEC of export_torch.py, or a torchvision name; default: all models of torchvision's
#          classification, segmentation and video, raft_small, and those of testdata/models/*.py
#   -d     where exports are kept and found again (default: a folder that is removed at the end)
#   -t     target (default host)
#   -r     timed runs of each placement (default 0: nothing runs)
#   -k     keep the weights of each model; without, they are removed once the model is done, since all of
#          them take some 15 GB
#   -l     list the models and exit
# Needs python3-torch and python3-torchvision (export_torch.py says so if they are missing).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
PATH=$root/build/bin:$PATH
folder='' target=host runs=0 keep=0 list=0
while getopts d:t:r:kl option; do
  case $option in
    d) folder=$OPTARG ;;
    t) target=$OPTARG ;;
    r) runs=$OPTARG ;;
    k) keep=1 ;;
    l) list=1 ;;
    *) sed -n '3,22s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))

# Every model of the kinds that are asked for, a SPEC a line.
all_models() {
  PYTHONPATH=$root/scripts "$(python_with_torch)" - <<'END'
from export.models import torchvision_models

for name, (_, kind) in sorted(torchvision_models().items(), key=lambda item: (item[1][1], item[0])):
    if kind in ("", "segmentation", "video"):
        print("torchvision:" + name)
print("torchvision:raft_small")
END
  local functions=(bert_base.py:bert_base gpt_small.py:gpt_small families.py:unet_norms families.py:lstm families.py:gru
    families.py:translator families.py:audio_net)
  printf "$root/testdata/models/%s\n" "${functions[@]}"
}
python_with_torch() {
  local python
  for python in /usr/bin/python3 python3; do
    if "$python" -c 'import torch, torchvision' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  echo "zoo_coverage.sh: python3-torch and python3-torchvision are missing; on Debian: apt-get install python3-torch python3-torchvision" >&2
  return 1
}

if [ $# -eq 0 ]; then
  models=$(all_models)
  mapfile -t models <<<"$models"
  set -- "${models[@]}"
fi
if [ "$list" = 1 ]; then
  printf '%s\n' "$@"
  exit 0
fi
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"

# The number of a metric in npu-partition's report. $1: metric, $2: file
metric() { awk -v key="$1" '$1 == key { print $2; exit }' "$2"; }
# The first number after "KEY": in a report of npu-run. $1: key, $2: file
field() { { grep -o "\"$1\": *[0-9.e+-]*" "$2" || true; } | tail -n 1 | sed 's/.*: *//'; }

# The median time of a placement in ms, or "differs", or "fails". $1: name, $2: document, the rest: options
time_of() {
  local name=$1 document=$2 status=0
  shift 2
  npu-run -q "$@" --bench "$runs" --inputs "$folder/$name.inputs.safetensors" --rtol 1e-3 --atol 1e-4 \
    --expect "$folder/$name.outputs.safetensors" "$document" >"$folder/$name.report.json" 2>"$folder/$name.log" || status=$?
  case $status in
    0) field median_ms "$folder/$name.report.json" ;;
    4) echo differs ;;
    *) echo fails ;;
  esac
}

# A document alone is enough to place a model, and takes a third of the time and none of the 15 GB.
needed=outputs.safetensors form=()
if [ "$runs" = 0 ]; then needed=json form=(--structure-only); fi
failed=0 count=0
printf '%-28s %6s %6s %5s %8s %8s' model npu others parts FLOPs nodes
[ "$runs" = 0 ] || printf ' %9s %9s %9s' 'default' 'on npu' 'on cpu'
printf '  %s\n' result
for spec in "$@"; do
  case $spec in
    *:*) ;;
    *) spec=torchvision:$spec ;;
  esac
  name=${spec##*:}
  count=$((count + 1))
  if [ ! -f "$folder/$name.$needed" ]; then
    "$root/scripts/export_torch.py" "$spec" "${form[@]}" -o "$folder" >"$folder/$name.log" 2>&1 || {
      printf '%-28s export failed: %s\n' "$name" "$(tail -n 1 "$folder/$name.log")"
      failed=$((failed + 1))
      continue
    }
  fi
  placed=$folder/$name.part.json table=$folder/$name.table result=ok
  npu-tag -q --target "$target" "$folder/$name.json" |
    npu-partition --strategy mincut --report -o "$placed" 2>"$table" || result="npu-partition fails: $(tail -n 1 "$table")"
  if [ "$result" = ok ]; then
    flops=$(metric coverage_flops "$table") nodes=$(metric coverage_nodes "$table")
    parts=$(metric partitions "$table") first=$(metric nodes_npu "$table")
    others=$(awk '$1 ~ /^nodes_/ && $1 !~ /^nodes_(npu|per_partition)$/ { n += $2 } END { print n + 0 }' "$table")
    awk -v f="$flops" -v n="$nodes" -v p="$parts" -v o="$others" \
      'BEGIN { exit !(f >= 1 && n >= 0.99 && (p == 1 || o > 0)) }' || result='below the bar'
    printf '%-28s %6s %6s %5s %8s %8s' "$name" "$first" "$others" "$parts" "$flops" "$nodes"
    if [ "$runs" != 0 ]; then
      : >"$folder/$name.ratios"
      for _ in 1 2 3; do
        placed_ms=$(time_of "$name" "$placed") npu_ms=$(time_of "$name" "$folder/$name.json" --devices npu,cpu)
        cpu_ms=$(time_of "$name" "$folder/$name.json" --devices cpu)
        case "$placed_ms $npu_ms $cpu_ms" in
          *differs* | *fails*)
            result='a run differs or fails'
            break
            ;;
        esac
        awk -v d="$placed_ms" -v n="$npu_ms" -v c="$cpu_ms" 'BEGIN { print d / (n < c ? n : c) }' >>"$folder/$name.ratios"
      done
      printf ' %9.9s %9.9s %9.9s' "$placed_ms" "$npu_ms" "$cpu_ms"
      ratio=$(sort -g "$folder/$name.ratios" | sed -n 2p)
      awk -v r="${ratio:-0}" 'BEGIN { exit !(r <= 1.05) }' || result="$result, slower than one device"
    fi
  else
    printf '%-28s' "$name"
  fi
  printf '  %s\n' "$result"
  [ "$result" = ok ] || failed=$((failed + 1))
  if [ "$keep" = 0 ]; then rm -f "$folder/$name".*; fi
done
printf '%s models, %s below a bar\n' "$count" "$failed"
[ "$failed" = 0 ]
