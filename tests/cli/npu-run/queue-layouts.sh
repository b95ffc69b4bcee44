# SPDX-License-Identifier: Apache-2.0
# Values between partitions of a device with queues lie as it likes: the same outputs, in one run and in several at once, and where
# another device reads some of them. Its clock says when a node ran.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/faulty-backends" ]; then cat "$CASES/npu-run/queue-layouts.stdout"; exit; fi
NPU_BACKEND_PATH=$lib/test-backends
export NPU_BACKEND_PATH
target=$CASES/../../scripts/examples/skeleton-queue/skeleton_queue_target.json
model=$CASES/npu-run/queue_layouts_model.json
npu-tag -t host "$model" | npu-partition | npu-run --random-inputs 1 --outputs one.safetensors >/dev/null
npu-tag --target "$target" "$model" >tagged.json
npu-partition -s metis -k 3 --imbalance 1.5 tagged.json -o parts.json
npu-compile parts.json -o m.npub
echo "layouts: $(npu-compile --info m.npub | grep -o '"n[0-9]": *"skeleton-queue:reversed"' | sort -u | tr -d ' ' | tr '\n' ' ')"
check() {
  npu-run "$@" --random-inputs 1 --expect one.safetensors >report 2>messages
  echo "exit $?, expect $(comparison expect <report)"
}
check m.npub
check m.npub --in-flight 3 --bench 6
check m.npub --no-overlap
echo "two devices:"
npu-tag --target "$target" --force npu1=n3 "$model" | npu-partition -s contiguous -o two.json
check two.json
check two.json --in-flight 3 --bench 6
echo "a device that refuses what it lists:"
NPU_BACKEND_PATH=$lib/faulty-backends
CHECK_FAULT=refuses-layouts
export CHECK_FAULT
check parts.json -v --no-cache
sed -n 's/.*\(compiled again with row-major values: .*\)/\1/p' messages | sort -u
unset CHECK_FAULT
NPU_BACKEND_PATH=$lib/test-backends
echo "when nodes ran:"
npu-run m.npub --random-inputs 1 --trace trace.json >/dev/null
grep -c '"clock_error_us"' trace.json
# Runs of a millisecond, and clocks that take 200 ms to read, before and after: the trace has the run alone.
NPU_BACKEND_PATH=$lib/faulty-backends CHECK_FAULT=slow-clock npu-run m.npub --random-inputs 1 --trace slow.json >report
number measured_ms <report | awk '{ print ($1 > 0 && $1 < 150) ? "without the time that the clock took" : $1 " ms" }'
tr -d '\n ' <slow.json | grep -o '"ts":[0-9.]*' | cut -d : -f 2 | sort -g | awk '{ last = $1 } END { print (last < 150000) ? "from the begin of the run on" : last " us" }'
