#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints how far predictions are from measurements on this machine: models under the default rates of the target `host`,
# under the rates that npu-profile --machine measures, and under the profile of the model; then plans of graph neural
# networks under tables of the graph's size. Everything is measured in seven rounds, in turns.
#
# Usage: scripts/bench/truth.sh [-d DIR] [-D DIR] [-t THREADS] [-r ROUNDS] [-g] [-m] [-u N] [-l] [MODEL...]
#   MODEL  torchvision name or FILE.py:FUNCTION; default: the eight of vs_peers.sh, swin_t, fcn_resnet50, an LSTM, a U-Net
#   -d DIR      where exports, graphs and tables are kept (default: as vs_peers.sh)
#   -t THREADS  of every program (default: all cores)
#   -r ROUNDS   (default 7)
#   -D DIR      folder with cora.mtx, citeseer.mtx and 4elt.graph, for plans of those graphs, too
#   -g          graphs only
#   -m          models only
#   -u N        marks only: how many of N plans of each graph npu-plan vouches for
#   -l          with -u: beside a busy loop, where it should vouch for none
# Exit status 1 if a bar is missed: 25 % with the rates of the machine, 10 % with a profile, 15 % for plans of graphs
# that are marked neither as uncertain nor as disturbed, at most 5 % slower than the best single device, and 19 of 20
# plans that are vouched for.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/npu-bench/zoo threads=$(nproc) rounds=7 parts=both data=() marks=()
while getopts d:D:t:r:gmu:l option; do
  case $option in
    d) folder=$OPTARG ;;
    D) data=(--data "$OPTARG") ;;
    t) threads=$OPTARG ;;
    r) rounds=$OPTARG ;;
    g) parts=graphs ;;
    m) parts=models ;;
    u) parts=graphs marks+=(--marks "$OPTARG") ;;
    l) marks+=(--busy) ;;
    *) sed -n '3,21s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- resnet18 resnet50 mobilenet_v2 inception_v3 efficientnet_b0 densenet121 vit_b_16 \
  "$root/testdata/models/bert_base.py:bert_base" swin_t fcn_resnet50 \
  "$root/testdata/models/families.py:lstm" "$root/testdata/models/families.py:unet"
mkdir -p "$folder"
status=0
if [ "$parts" != graphs ]; then
  names=()
  for spec in "$@"; do
    name=${spec##*:}
    case $spec in
      *:*) ;;
      *) spec=torchvision:$spec ;;
    esac
    if [ ! -f "$folder/$name.json" ]; then
      "$root/scripts/export_torch.py" "$spec" -o "$folder" >"$folder/$name.log" 2>&1 || {
        echo "truth.sh: export of $name failed; see $folder/$name.log" >&2
        continue
      }
    fi
    names+=("$name")
  done
  "$root/scripts/bench/truth_of_models.py" --folder "$folder" --threads "$threads" --rounds "$rounds" "${names[@]}" || status=1
fi
if [ "$parts" != models ]; then
  "$root/scripts/bench/gnn_prediction.py" -d "$folder/graphs" "${data[@]}" --threads "$threads" --rounds "$rounds" --limit 15 "${marks[@]}" || status=1
fi
exit "$status"
