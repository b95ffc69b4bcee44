#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the backend opencl on the first OpenCL device of this machine, with what the tests leave out because drivers
# compile slowly: all cases of npu-backend(3), and models on it, compared with the same models on the CPU.
#
# Usage: scripts/check_opencl.sh [--build FOLDER] [--full] [--no-cases] [--gnn] [--graph NAME=GRAPH[,FEATURES]]... [MODEL.json...]
#
#   --build FOLDER   where bin/ lies; build by default
#   --full           conformance with all repetitions instead of --quick
#   --no-cases       models only
#   --gnn            graph neural networks over cpu, gpu and npu beside PyTorch instead of models, on two random graphs
#   --graph ...      a graph for --gnn besides; scripts/check_gnn.py does the work and needs its packages
#   MODEL.json       instead of the models of testdata; weights in MODEL.safetensors, otherwise random ones
#
# A line for each model: launches of npu-fuse and kernels of the backend, nodes by device, and the largest difference.
# The last line counts; the exit status is 0 only if all pass. Kernels are kept in a scratch folder, or in POCL_CACHE_DIR.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

build=build quick=--quick cases=1 gnn=0 graphs=() models=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --build)
      build=${2:?--build needs a folder}
      shift
      ;;
    --full) quick= ;;
    --no-cases) cases=0 ;;
    --gnn) gnn=1 ;;
    --graph)
      graphs+=(--graph "${2:?--graph needs NAME=GRAPH}")
      shift
      ;;
    -*)
      sed -n 's/^# Usage: /usage: /p' "$0" >&2
      exit 2
      ;;
    *) models+=("$1") ;;
  esac
  shift
done
PATH=$PWD/$build/bin:$PATH
command -v npu-run >/dev/null || {
  echo "check_opencl.sh: no npu-run in $build/bin; build it first" >&2
  exit 1
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$scratch/kernels} XDG_CACHE_HOME=$scratch/cache
mkdir -p "$POCL_CACHE_DIR"
if ! npu-run --list-backends | grep -q '"id":"opencl:0".*"usable":true'; then
  echo "check_opencl.sh: no OpenCL device; npu-run --list-backends says why" >&2
  exit 77
fi
if [[ $gnn -eq 1 ]]; then
  for size in 34 600; do
    "${PYTHON:-/usr/bin/python3}" scripts/make_graph.py --nodes $size --edges $((5 * size)) -o "$scratch/random$size.mtx" --features 24 \
      --features-file "$scratch/random$size.npy" || exit
    graphs+=(--graph "random$size=$scratch/random$size.mtx,$scratch/random$size.npy")
  done
  "${PYTHON:-/usr/bin/python3}" scripts/check_gnn.py --target trio -d "$scratch/gnn" --build "$build" "${graphs[@]}"
  exit
fi
if [[ ${#models[@]} -eq 0 ]]; then
  for model in testdata/models/small/*.json testdata/models/*.json; do models+=("$model"); done
fi

passed=0 failed=0
count() { if [[ $1 -eq 0 ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }

if [[ $cases -eq 1 ]]; then
  # shellcheck disable=SC2086 # an option or none
  npu-run --check-backend opencl $quick --case-limit 3600 --report >"$scratch/check.json"
  count $?
fi

check_model() {
  local model=$1 weights=(--random-weights 0) groups kernels devices worst status
  [[ -f ${model%.json}.safetensors ]] && weights=(--weights "${model%.json}.safetensors")
  npu-tag -q --target opencl "$model" | npu-fuse -q | npu-partition -q >"$scratch/plan.json" || return
  groups=$(npu-fuse "$scratch/plan.json" --report 2>&1 >/dev/null | awk '/^kernel launches/ { print $4 }')
  npu-compile "$scratch/plan.json" "${weights[@]}" --report -o "$scratch/model.npub" 2>"$scratch/table" || return
  kernels=$(awk '$2 == "gpu" && $3 == "opencl" { sum += $5 } END { print sum + 0 }' "$scratch/table")
  devices=$(grep -o '"device": *"[a-z]*"' "$scratch/plan.json" | sort | uniq -c | awk '{ gsub(/"|device|:/, ""); print $2 "=" $1 }' |
    paste -sd, -)
  npu-run "$scratch/plan.json" "${weights[@]}" --random-inputs 0 --verify cpu --rtol 1e-3 --atol 1e-4 >"$scratch/report.json" \
    2>"$scratch/message"
  status=$?
  worst=$(grep -o '"max_abs": *[0-9.e+-]*' "$scratch/report.json" | sed 's/.*: *//' | sort -g | tail -n 1)
  printf '%-40s %-8s groups %-5s kernels %-5s %-24s max abs %s\n' "$(basename "$model")" \
    "$([[ $status -eq 0 ]] && echo ok || echo DIFFERS)" "$groups" "$kernels" "$devices" "${worst:--}"
  [[ $status -eq 0 ]] || tail -n 3 "$scratch/message"
  return $status
}

for model in "${models[@]}"; do
  check_model "$model"
  count $?
done
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
