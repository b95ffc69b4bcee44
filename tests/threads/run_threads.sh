#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything that runs on several threads, with a backend that starts none: the GNN runner, the compiler
# with its cache, and the executor with two devices. Results must not depend on the number of threads. The interesting
# run of this is the one under ThreadSanitizer (preset tsan), which makes the exit status 66 where two threads race.
#
# Usage: run_threads.sh SOURCE-DIR BIN-DIR BACKEND-DIR
set -eu
source=$(cd "$1" && pwd)
PATH=$(cd "$2" && pwd):$PATH
NPU_BACKEND_PATH=$(cd "$3" && pwd)
LC_ALL=C
export PATH NPU_BACKEND_PATH LC_ALL
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cp "$source"/testdata/gnn/* "$source/tests/threads/gin.json" .

# same WHAT FILE OTHER
same() {
  cmp "$2" "$3" || {
    echo "run_threads.sh: $1 differs" >&2
    exit 1
  }
}

echo "-- a GNN, its parts shared by two of three devices"
npu-plan -q graph.mtx --model gin.json --profile profile.json -k 5 --segments 1 --pad 16 -o plan.json
for threads in 1 2 4; do
  npu-run -q plan.json --features x.npy --device cpu=vendor --device gpu=vendor --device npu=vendor \
    --threads $threads --bench 3 --no-cache --outputs out-$threads.npy >report.json
  same "the result with $threads threads" out-1.npy out-$threads.npy
done
for device in cpu gpu; do
  grep -q "\"device\":\"$device\"" report.json || {
    echo "run_threads.sh: the plan leaves $device without work" >&2
    exit 1
  }
done

echo "-- a model of many partitions, compiled by several threads and processes with one cache"
target=$source/tests/unit/device/vendor_target.json
npu-tag -q --target "$target" --force 'npu2=aten.neg*' "$source/tests/threads/chain.json" |
  npu-partition -q -o chain.json
npu-compile -q chain.json --random-weights 1 -j 1 --no-cache -o one.npub
for run in 1 2; do
  npu-compile -q chain.json --random-weights 1 -j 4 --cache-dir cache -o four-$run.npub &
  npu-compile -q chain.json --random-weights 1 -j 4 --cache-dir cache -o other-$run.npub
  wait $!
  same "the bundle of four jobs" one.npub four-$run.npub
  same "the bundle of another process" one.npub other-$run.npub
done

echo "-- two devices at the same time"
npu-run -q one.npub --random-inputs 1 --no-overlap --outputs one-after-another.safetensors >report.json
npu-run -q one.npub --random-inputs 1 --bench 5 --outputs together.safetensors >report.json
same "the result of devices that overlap" one-after-another.safetensors together.safetensors

echo "-- devices with queues, and several runs at once"
npu-tag -q --target "$source/scripts/examples/skeleton-queue/skeleton_queue_target.json" --force npu1=middle \
  --force 'npu0=first' --force 'npu0=last' "$source/tests/cli/npu-run/queue_chain.json" |
  npu-partition -q -s contiguous -o queues.json
npu-run -q queues.json --random-inputs 1 --no-cache --no-overlap --outputs blocking.safetensors >report.json
npu-run -q queues.json --random-inputs 1 --no-cache --in-flight 3 --bench 30 --outputs queues.safetensors >report.json
same "the result of devices with queues" blocking.safetensors queues.safetensors
grep -q '"same_outputs": true' report.json || {
  echo "run_threads.sh: runs that went on at once differ" >&2
  exit 1
}
npu-run --check-backend skeleton-queue --quick --case 24 >report.json
