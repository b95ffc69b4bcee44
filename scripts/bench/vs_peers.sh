#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Times compiled models side by side with ONNX Runtime and PyTorch: the same models, weights and
# inputs, batch 1 or another (-B), every program in turn in every round, so that a busy machine hits all of them.
# Prints medians and ratios, load times, peak memory and how far results are from PyTorch's. "paired" is
# the median over the rounds of the ratio within a round: where a machine is slow for seconds at a time,
# both programs of a round are hit, while medians over all rounds may come from different moments.
#
# Usage: scripts/bench/vs_peers.sh [OPTION...] [MODEL...]
#   MODEL  torchvision name or FILE.py:FUNCTION; default: eight, from resnet18 to bert_base
#   -d DIR      where exports and bundles are kept and found again
#               (default: ${XDG_CACHE_HOME:-~/.cache}/npu-bench/zoo)
#   -t THREADS  list of thread counts (default "1 2")
#   -p LIST     precisions to compile for (default "f32"; "f32 bf16" for both), with @LEVEL for fewer instructions than
#               the CPU has: "f32 f32@avx2" has two rows of each model, and the mean ratio of the second to the first
#   -B N        batch size (default 1); exports and bundles of another one lie in the folder batchN of DIR
#   -n RUNS     timed runs of a program in a round (default 20)
#   -r ROUNDS   rounds (default 3); what is printed is the median over the rounds
#   -e RUNS     timed runs of PyTorch in a round (default 5; 0: leave it out)
#   -k N        compare the top-1 class of bf16 with that of f32 on N random inputs (default 0)
#   -o          compile the .onnx files that the peer runs, instead of the documents of export_torch.py
#   -b          then the same beside a busy loop on the last core, which half a run's threads meet: medians and
#               90th percentiles (take -n 500 -r 1 or so; needs taskset and two cores)
#   -a          all thirty: besides the eight more convolutional networks, transformers, segmentation, video, optical flow,
#               recurrent nets, an audio network (without -a: those of the command line, or the eight)
#   -i          install the peers and export the models, and stop
#
# Installs what is missing: Debian's python3-torch and python3-torchvision (needs root or sudo), and
# onnxruntime-node from npm, without running its install scripts, beside the exports.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bench=$root/scripts/bench
PATH=$root/build/bin:$PATH
cache=${XDG_CACHE_HOME:-$HOME/.cache}/npu-bench
folder=$cache/zoo threads='1 2' precisions=f32 runs=20 rounds=3 eager=5 top1=0 source=json busy=0 install_only=0 all=0 batch=1
while getopts d:t:p:B:n:r:e:k:boai option; do
  case $option in
    d) folder=$OPTARG ;;
    t) threads=$OPTARG ;;
    p) precisions=$OPTARG ;;
    B) batch=$OPTARG ;;
    n) runs=$OPTARG ;;
    r) rounds=$OPTARG ;;
    e) eager=$OPTARG ;;
    k) top1=$OPTARG ;;
    o) source=onnx ;;
    b) busy=1 ;;
    a) all=1 ;;
    i) install_only=1 ;;
    *) sed -n '3,32s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[[ $batch =~ ^[1-9][0-9]*$ ]] || { echo "vs_peers.sh: -B $batch: a batch size is a number from 1 on" >&2; exit 2; }
sized=() # how the exporters learn of another batch size than the models' own
[ "$batch" = 1 ] || { folder=$folder/batch$batch; sized=(--batch "$batch"); }
mkdir -p "$folder" "$cache/ort"
scratch=$(mktemp -d)
neighbour=
trap 'stop_neighbour; rm -rf "$scratch"' EXIT

fail() {
  echo "vs_peers.sh: $*" >&2
  exit 1
}

start_neighbour() {
  taskset -c "$(($(nproc) - 1))" sh -c 'while :; do :; done' &
  neighbour=$!
  sleep 0.3
}
stop_neighbour() {
  [ -z "$neighbour" ] || kill "$neighbour" 2>/dev/null || true
  neighbour=
}

install_peers() {
  if ! { /usr/bin/python3 -c 'import torch, torchvision' || python3 -c 'import torch, torchvision'; } 2>/dev/null; then
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
      python3-torch python3-torchvision || fail "cannot install python3-torch python3-torchvision"
  fi
  command -v npm >/dev/null || fail "npm is missing; install Node.js 16 or later"
  if [ ! -d "$cache/ort/node_modules/onnxruntime-node" ]; then
    (cd "$cache/ort" && echo '{"private": true}' >package.json &&
      npm install --ignore-scripts --no-audit --no-fund onnxruntime-node >npm.log 2>&1) ||
      fail "cannot install onnxruntime-node; see $cache/ort/npm.log"
  fi
  export NODE_PATH=$cache/ort/node_modules
}

# The number of a key in a file of JSON objects, one result per line; nothing if there is none.
field() { { grep -o "\"$1\": *[0-9.e+-]*" "$2" || true; } | sed 's/.*: *//'; }
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.6g", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# The median of the ratios of two files' medians, line by line.
paired() { paste <(field median_ms "$1") <(field median_ms "$2") | awk '$2 > 0 { print $1 / $2 }' | median; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a > 0 && b > 0) printf "%.3f", a / b; else printf "-" }'; }
geomean() { awk '$1 > 0 { s += log($1); ++n } END { if (n) printf "%.3f", exp(s / n); else printf "-" }'; }
mega() { awk -v a="$1" 'BEGIN { if (a != "") printf "%.0f", a / 1e6; else printf "-" }'; }

export_model() { # $1: SPEC, $2: name
  if [ ! -f "$folder/$2.outputs.safetensors" ]; then
    "$root/scripts/export_torch.py" "$1" "${sized[@]}" -o "$folder" >"$folder/$2.log" 2>&1 ||
      fail "export of $2 failed; see $folder/$2.log"
  fi
  # Written again if the exporter has changed, since names of inputs did.
  if [ ! -f "$folder/$2.onnx" ] || [ "$bench/export_onnx.py" -nt "$folder/$2.onnx" ]; then
    "$bench/export_onnx.py" "$1" "${sized[@]}" -o "$folder" >"$folder/$2.onnx.log" 2>&1 ||
      fail "export of $2 to ONNX failed; see $folder/$2.onnx.log"
  fi
}

bundle_of() { # $1: name, $2: precision, $3: threads
  if [ "$source" = onnx ]; then echo "$folder/$1.onnx.$2.$3.npub"; else echo "$folder/$1.$2.$3.npub"; fi
}

compile_model() { # $1: name, $2: PRECISION[@LEVEL], $3: threads
  local isa=()
  [[ $2 != *@* ]] || isa=(--isa "${2#*@}")
  npu-compile -q --no-cache --precision "${2%@*}" "${isa[@]}" --threads "$3" "$folder/$1.$source" \
    -o "$(bundle_of "$1" "$2" "$3")"
}

# One round of one model; results are appended to files of $scratch.
round() { # $1: SPEC, $2: name, $3: threads
  local precision
  for precision in $precisions; do
    # A wrong result is reported in its column; it does not end the script.
    npu-run "$(bundle_of "$2" "$precision" "$3")" --threads "$3" --bench "$runs" \
      --inputs "$folder/$2.inputs.safetensors" --expect "$folder/$2.outputs.safetensors" \
      >"$scratch/ours" 2>"$scratch/complaint" ||
      grep -q 'out of tolerance' "$scratch/complaint" || { cat "$scratch/complaint" >&2; return 1; }
    cat "$scratch/ours" >>"$scratch/$precision"
  done
  node "$bench/run_onnx.js" "$folder/$2.onnx" "$folder/$2.inputs.safetensors" "$runs" "$3" \
    "$folder/$2.outputs.safetensors" >>"$scratch/ort"
  if [ "$eager" -gt 0 ]; then
    "$bench/export_onnx.py" "$1" "${sized[@]}" --eager "$eager" --threads "$3" >>"$scratch/torch" 2>/dev/null
  fi
}

# One model beside a busy loop, by every program; results are in files of $scratch.
round_with_neighbour() { # $1: name, $2: threads
  local precision
  start_neighbour
  for precision in $precisions; do
    npu-run -q "$(bundle_of "$1" "$precision" "$2")" --threads "$2" --bench "$runs" \
      --inputs "$folder/$1.inputs.safetensors" >>"$scratch/busy.$precision"
  done
  node "$bench/run_onnx.js" "$folder/$1.onnx" "$folder/$1.inputs.safetensors" "$runs" "$2" >>"$scratch/busy.ort"
  stop_neighbour
}

# A table of all models beside a busy loop.
beside_neighbour() { # $1: threads
  local spec name precision i
  printf '\n%s thread(s), beside a busy loop on one of %s cores; p90: 90th percentile\n%-16s %-8s %8s %8s %8s %8s %8s %8s\n' \
    "$1" "$(nproc)" model prec ours ORT ratio 'ours p90' 'ORT p90' ratio
  for spec in "${names[@]}"; do
    name=${spec##*:}
    rm -f "$scratch"/busy.*
    for ((i = 0; i < rounds; ++i)); do round_with_neighbour "$name" "$1"; done
    for precision in $precisions; do
      printf '%-16s %-8s' "$name" "$precision"
      for key in median_ms p90_ms; do
        ours=$(field "$key" "$scratch/busy.$precision" | median)
        ort=$(field "$key" "$scratch/busy.ort" | median)
        printf ' %8.2f %8.2f %8s' "$ours" "$ort" "$(ratio "$ours" "$ort")"
      done
      echo
    done
  done
  echo
}

models=$root/testdata/models
eight=(resnet18 resnet50 mobilenet_v2 inception_v3 efficientnet_b0 densenet121 vit_b_16 "$models/bert_base.py:bert_base")
if [ "$all" = 1 ]; then
  [ $# -eq 0 ] || fail "-a takes no models"
  set -- "${eight[@]}" resnext50_32x4d regnet_y_400mf mobilenet_v3_large convnext_tiny swin_t maxvit_t vgg11 shufflenet_v2_x1_0 \
    squeezenet1_1 vit_b_32 fcn_resnet50 deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large "$models/families.py:unet_norms" \
    r3d_18 r2plus1d_18 raft_small "$models/families.py:lstm" "$models/families.py:gru" "$models/gpt_small.py:gpt_small" \
    "$models/families.py:translator" "$models/families.py:audio_net"
elif [ $# -eq 0 ]; then
  set -- "${eight[@]}"
fi
install_peers
names=()
for spec in "$@"; do
  case $spec in
    *:*) ;;
    *) spec=torchvision:$spec ;;
  esac
  names+=("$spec")
  export_model "$spec" "${spec##*:}"
done
[ "$install_only" = 0 ] || exit 0

core=$("$bench/blas_core.py")
[ -z "$core" ] || export OPENBLAS_CORETYPE="$core" # for PyTorch
printf 'ONNX Runtime %s, PyTorch %s, %s; batch %s, %s runs in each of %s rounds; times in ms, memory in MB\n' \
  "$(node -p 'require("onnxruntime-node/package.json").version')" \
  "$({ /usr/bin/python3 -c 'import torch; print(torch.__version__)' || python3 -c 'import torch; print(torch.__version__)'; } 2>/dev/null)" \
  "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores" "$batch" "$runs" "$rounds"
for count in $threads; do
  for precision in $precisions; do : >"$scratch/ratios.$precision"; : >"$scratch/paired.$precision"; : >"$scratch/load.$precision"; : >"$scratch/memory.$precision"; : >"$scratch/first.$precision"; done
  printf '\n%s thread(s)\n%-16s %-8s %8s %8s %8s %8s %8s %8s %8s | %8s %8s %7s | %7s %7s %7s | %9s %9s\n' "$count" \
    model prec ours ORT ratio paired p90 'ORT p90' torch load 'ORT load' ratio RSS 'ORT RSS' ratio 'max abs' 'ORT rel'
  for spec in "${names[@]}"; do
    name=${spec##*:}
    for precision in $precisions; do compile_model "$name" "$precision" "$count"; : >"$scratch/$precision"; done
    : >"$scratch/ort"
    : >"$scratch/torch"
    for ((i = 0; i < rounds; ++i)); do round "$spec" "$name" "$count"; done
    ort=$(field median_ms "$scratch/ort" | median)
    ort_load=$(field create_ms "$scratch/ort" | median)
    ort_rss=$(field peak_rss_bytes "$scratch/ort" | median)
    torch=$(field median_ms "$scratch/torch" | median)
    for precision in $precisions; do
      ours=$(field median_ms "$scratch/$precision" | median)
      # The report has it twice; the last is that of "bench", and both are equal.
      load=$(grep -o '"load_ms": *[0-9.]*' "$scratch/$precision" | sed 's/.*: *//' | median)
      rss=$(field peak_rss_bytes "$scratch/$precision" | median)
      error=$(grep -o '"max_abs":[0-9.e+-]*' "$scratch/$precision" | sed 's/.*://' | sort -g | tail -n 1)
      first=$(field median_ms "$scratch/${precisions%% *}" | median)
      ratio "$ours" "$first" >>"$scratch/first.$precision"; echo >>"$scratch/first.$precision"
      ratio "$ours" "$ort" >>"$scratch/ratios.$precision"; echo >>"$scratch/ratios.$precision"
      pairs=$(paired "$scratch/$precision" "$scratch/ort")
      echo "$pairs" >>"$scratch/paired.$precision"
      ratio "$load" "$ort_load" >>"$scratch/load.$precision"; echo >>"$scratch/load.$precision"
      ratio "$rss" "$ort_rss" >>"$scratch/memory.$precision"; echo >>"$scratch/memory.$precision"
      printf '%-16s %-8s %8.2f %8.2f %8s %8.3f %8.2f %8.2f %8s | %8.1f %8.1f %7s | %7s %7s %7s | %9.1e %9.1e\n' "$name" "$precision" \
        "$ours" "$ort" "$(ratio "$ours" "$ort")" "$pairs" "$(field p90_ms "$scratch/$precision" | median)" \
        "$(field p90_ms "$scratch/ort" | median)" "${torch:--}" "$load" "$ort_load" \
        "$(ratio "$load" "$ort_load")" "$(mega "$rss")" "$(mega "$ort_rss")" "$(ratio "$rss" "$ort_rss")" \
        "$error" "$(field relative_error "$scratch/ort" | sort -g | tail -n 1)"
    done
  done
  [ "$busy" = 0 ] || beside_neighbour "$count"
  for precision in $precisions; do
    [ "$precision" = "${precisions%% *}" ] ||
      printf 'geometric mean, %s over %s: time %s, worst %s\n' "$precision" "${precisions%% *}" \
        "$(geomean <"$scratch/first.$precision")" "$(sort -g "$scratch/first.$precision" | tail -n 1)"
    printf 'geometric mean, %s: time %s, paired %s, load %s, memory %s (ours / ONNX Runtime); worst time %s\n' "$precision" \
      "$(geomean <"$scratch/ratios.$precision")" "$(geomean <"$scratch/paired.$precision")" "$(geomean <"$scratch/load.$precision")" \
      "$(geomean <"$scratch/memory.$precision")" "$(sort -g "$scratch/ratios.$precision" | tail -n 1)"
  done
done

if [ "$top1" -gt 0 ] && [[ $precisions == *bf16* ]]; then
  printf '\ntop-1 of bf16 and f32, %s random inputs\n' "$top1"
  for spec in "${names[@]}"; do
    name=${spec##*:}
    count=${threads##* }
    [ -f "$(bundle_of "$name" f32 "$count")" ] || compile_model "$name" f32 "$count"
    same=0
    for ((seed = 1; seed <= top1; ++seed)); do
      for precision in f32 bf16; do
        npu-run -q "$(bundle_of "$name" "$precision" "$count")" --random-inputs "$seed" \
          --outputs "$scratch/$precision.safetensors" >/dev/null
      done
      [ "$(node "$bench/top1.js" "$scratch/f32.safetensors" "$scratch/bf16.safetensors")" = same ] && same=$((same + 1))
    done
    printf '%-16s %s of %s\n' "$name" "$same" "$top1"
  done
fi
