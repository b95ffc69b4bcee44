#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether runs on devices with queues take the time of their schedule, on the machine's clock: what the unit tests
# [queue] say of a simulated one. Two devices of skeleton-queue take 5 ms for a partition. Two partitions side by side and
# one behind them have to take 10 ms within 5 per cent; three runs of a chain at once 2.5 times the throughput of one.
# For a machine that does nothing else.
#
# Usage: scripts/bench/queue_times.sh [-n RUNS]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
PATH=$root/build/bin:$PATH
NPU_BACKEND_PATH=$root/build/lib/npu/test-backends
export NPU_BACKEND_PATH
runs=60
while getopts n: option; do
  case $option in
    n) runs=$OPTARG ;;
    *)
      sed -n '3,9s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
sed 's/"instance"/"delay_us": 5000, "instance"/' "$root/scripts/examples/skeleton-queue/skeleton_queue_target.json" >target.json

tensor() { echo "{\"name\": \"$1\", \"shape\": [4, 16], \"dtype\": \"float32\"}"; }
cat >side.json <<DOCUMENT
{"model_name": "side", "graph_inputs": [$(tensor x)], "graph_outputs": [$(tensor last)], "weights": [],
 "nodes": [
  {"name": "left", "op_type": "aten.relu.default", "inputs": [$(tensor x)], "outputs": [$(tensor left)], "attrs": {}},
  {"name": "right", "op_type": "aten.relu.default", "inputs": [$(tensor x)], "outputs": [$(tensor right)], "attrs": {}},
  {"name": "last", "op_type": "aten.add.Tensor", "inputs": [$(tensor left), $(tensor right)], "outputs": [$(tensor last)],
   "attrs": {}}]}
DOCUMENT
place() {
  npu-tag -q --target ./target.json "${@:2}" "$1" | npu-partition -q -s contiguous
}
place side.json --force npu0=left --force npu1=right --force npu0=last >side.part.json
place "$root/tests/cli/npu-run/queue_chain.json" --force npu1=middle --force npu0=first --force npu0=last >chain.part.json

# bench FIELD FILE OPTION...
bench() {
  npu-run -q --random-inputs 1 --bench "$runs" "${@:2}" | sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" | head -n 1
}
makespan=$(bench median_ms side.part.json)
one=$(bench runs_per_second chain.part.json)
three=$(bench runs_per_second chain.part.json --in-flight 3)
awk -v makespan="$makespan" -v one="$one" -v three="$three" 'BEGIN {
  printf "makespan: scheduled 10.00 ms, median %.2f ms\n", makespan
  printf "throughput: %.1f runs/s alone, %.1f with three in flight, %.2f times\n", one, three, three / one
  exit !(makespan >= 9.5 && makespan <= 10.5 && three >= 2.5 * one)
}'
