#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Counts the instructions that the least exchange between ranks takes on random graphs of n, 2n and 4n nodes with ten edges
# each: those of a plan with covers less those of the same plan with features alone. What 2n to 4n adds must be about twice
# what n to 2n adds; 4 would be quadratic.
#
# Usage: run_exchange_scaling.sh BIN-DIR TESTDATA    exits 77 without valgrind
set -eu
bin=$1
gnn=$2/gnn
command -v valgrind >/dev/null || {
  echo "valgrind is not here: nothing counts instructions"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The instructions of a plan of graph $1 with the exchange $2.
instructions() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bin/npu-plan" -q "$folder/graph$1" --nodes "$1" \
    --model "$gnn/graphsage.json" --profile "$gnn/profile.json" --devices cpu --select greedy -k 4 --ranks 4 --partitioner metis \
    --exchange "$2" -o "$folder/plan.json" 2>"$folder/log" || {
    cat "$folder/log" >&2
    exit 1
  }
  sed -n 's/.*Collected : *\([0-9]*\).*/\1/p' "$folder/log"
}

counts=
for factor in 1 2 4; do
  n=$((1000 * factor))
  # Few sources of many edges, as in graphs of people and links: covers that are far from both sides.
  awk -v n=$n 'BEGIN {
    state = 1
    for (e = 0; e < 10 * n; ++e) {
      state = (state * 16807) % 2147483647
      u = state / 2147483647
      state = (state * 16807) % 2147483647
      print int(u * u * u * n), int(state / 2147483647 * n)
    }
  }' >"$folder/graph$n"
  counts="$counts $(($(instructions $n cover) - $(instructions $n features)))"
done
# shellcheck disable=SC2086 # three numbers
set -- $counts
awk -v a="$1" -v b="$2" -v c="$3" 'BEGIN {
  growth = (c - b) / (b - a)
  printf("least exchange %12d %12d %12d   growth %.2f%s\n", a, b, c, growth, growth > 3 ? ", expected 2" : "")
  exit growth > 3
}'
