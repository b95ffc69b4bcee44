#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The model zoo, laid out three ways for the target host: by npu-align's greedy pass, by its optimal
# one, and by the backend alone. Conversions, bytes that they write, and milliseconds: the best run of
# all and the median of the best runs of the rounds, in which the three take turns. "reorders" is what
# the compiled programs do, conversions included; "kernels" says whether optimal's programs have the same
# kernels in the same order as the backend's own: then a difference in time is noise. Needs both backends;
# the results are checked against each other once. At the end, the counts for the target pytorch-apple.
#
# Usage: scripts/bench/align_zoo.sh [-n RUNS] [-r ROUNDS] [-t THREADS] [MODEL.json...]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
PATH=$root/build/bin:$PATH
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-PASSIVE}
runs=10 rounds=5 threads=2
while getopts n:r:t: option; do
  case $option in
    n) runs=$OPTARG ;;
    r) rounds=$OPTARG ;;
    t) threads=$OPTARG ;;
    *) sed -n '3,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- "$root"/testdata/models/{resnet18,resnet50,mobilenet_v2,inception_v3,vit_b_16,bert_base}.json
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

metric() { grep -o "\"$2\":[0-9][0-9.]*" "$1" | head -n 1 | cut -d: -f2; }
median() { sort -n | awk '{ v[NR] = $1 } END { printf "%.2f\n", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
time_run() {
  npu-run --random-weights 0 --random-inputs 0 --threads "$threads" --bench "$runs" "$1" |
    grep -o '"min_ms": *[0-9.]*' | grep -o '[0-9.]*$'
}

# Compiles a document and sets the number of its programs' reorders, and their steps by implementation.
compile() {
  npu-compile -q --random-weights 0 --no-cache -o "$scratch/compiled.npub" "$1"
  npu-compile --info "$scratch/compiled.npub" >"$scratch/info.json"
  reorders=$(grep -o '"reorders":[0-9]*' "$scratch/info.json" | awk -F: '{ sum += $2 } END { print sum + 0 }')
  steps=$(grep -o '"kind":"[a-z_]*","implementation":"[^"]*"' "$scratch/info.json" | cksum)
}

line='%-16s %6s %8s %8s %7s %8s %8s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n'
# shellcheck disable=SC2059
printf "$line" 'target host' greedy bytes reorders optimal bytes reorders 'own reo.' kernels greedy median optimal median own \
  median opt/own
for model in "$@"; do
  name=$(basename "$model" .json)
  npu-tag -q "$model" | npu-partition >"$scratch/own.json"
  for algorithm in greedy optimal; do
    npu-align -q -a "$algorithm" "$scratch/own.json" -o "$scratch/$algorithm.json"
  done
  npu-run --random-weights 0 --random-inputs 0 --threads "$threads" --outputs "$scratch/own.safetensors" "$scratch/own.json" >/dev/null
  for algorithm in greedy optimal; do
    npu-run --random-weights 0 --random-inputs 0 --threads "$threads" --expect "$scratch/own.safetensors" --rtol 1e-4 --atol 1e-5 \
      "$scratch/$algorithm.json" >/dev/null || echo "$name: $algorithm differs from the backend's own choice" >&2
  done
  : >"$scratch/greedy.ms"
  : >"$scratch/optimal.ms"
  : >"$scratch/own.ms"
  for ((round = 0; round < rounds; ++round)); do
    for variant in own greedy optimal; do time_run "$scratch/$variant.json" >>"$scratch/$variant.ms"; done
  done
  best() { sort -n "$scratch/$1.ms" | awk '{ printf "%.2f\n", $1; exit }'; }
  compile "$scratch/greedy.json"
  greedy_reorders=$reorders
  compile "$scratch/optimal.json"
  optimal_reorders=$reorders optimal_steps=$steps
  compile "$scratch/own.json"
  kernels=differ
  [ "$optimal_steps" != "$steps" ] || kernels=same
  # shellcheck disable=SC2059
  printf "$line" "$name" "$(metric "$scratch/greedy.json" conversions)" "$(metric "$scratch/greedy.json" conversion_bytes)" \
    "$greedy_reorders" "$(metric "$scratch/optimal.json" conversions)" "$(metric "$scratch/optimal.json" conversion_bytes)" \
    "$optimal_reorders" "$reorders" "$kernels" "$(best greedy)" "$(median <"$scratch/greedy.ms")" "$(best optimal)" \
    "$(median <"$scratch/optimal.ms")" "$(best own)" "$(median <"$scratch/own.ms")" \
    "$(awk "BEGIN { printf \"%.2f\", $(best optimal) / $(best own) }")"
done

# A target whose ops want aligned channels; no backend here runs it, so this only counts.
printf '\n%-16s %6s %10s %7s %10s\n' 'pytorch-apple' greedy bytes optimal bytes
for model in "$@"; do
  npu-tag -q --target pytorch-apple "$model" | npu-partition >"$scratch/own.json"
  for algorithm in greedy optimal; do
    npu-align -q -a "$algorithm" "$scratch/own.json" -o "$scratch/$algorithm.json"
  done
  printf '%-16s %6s %10s %7s %10s\n' "$(basename "$model" .json)" \
    "$(metric "$scratch/greedy.json" conversions)" "$(metric "$scratch/greedy.json" conversion_bytes)" \
    "$(metric "$scratch/optimal.json" conversions)" "$(metric "$scratch/optimal.json" conversion_bytes)"
done
