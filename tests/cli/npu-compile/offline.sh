# SPDX-License-Identifier: Apache-2.0
# A backend compiles for an architecture that this machine lacks; the bundle runs where there is a device of it, and only there.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/faulty-backends" ]; then cat "$CASES/npu-compile/offline.stdout"; exit; fi
NPU_BACKEND_PATH=$lib/faulty-backends
export NPU_BACKEND_PATH
model=$CASES/npu-run/queue_layouts_model.json
target() { sed "s/skeleton-queue:0/$1/" "$CASES/../../scripts/examples/skeleton-queue/skeleton_queue_target.json"; }
target arch:skeleton-1 >arch.json
target skeleton-queue:0 >id.json
for name in arch id; do npu-tag --target ./$name.json "$model" | npu-partition -s contiguous -o $name.part.json; done
echo "without the device:"
CHECK_FAULT=absent
export CHECK_FAULT
npu-compile --no-cache arch.part.json -o absent.npub && echo compiled
try_silent npu-run absent.npub --random-inputs 1
try_silent npu-compile --no-cache id.part.json -o id.npub
echo "with it:"
unset CHECK_FAULT
npu-compile --no-cache arch.part.json -o present.npub
cmp absent.npub present.npub && echo "the same bundle"
npu-run absent.npub --random-inputs 1 --verify cpu | grep -o '"ok": *true' | head -n 1
echo "another one:"
target arch:skeleton-9 >other.json
npu-tag --target ./other.json "$model" | npu-partition -s contiguous -o other.part.json
try npu-compile other.part.json -o other.npub
