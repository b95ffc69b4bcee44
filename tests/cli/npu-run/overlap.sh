# SPDX-License-Identifier: Apache-2.0
# Steps that do not depend on each other run concurrently: two nodes of the vendor's backend
# return only if they meet. --no-overlap runs one after the other.
. "$CASES/lib.sh"
NPU_BACKEND_PATH=$(dirname "$(command -v npu-run)")/../lib/npu/test-backends
export NPU_BACKEND_PATH
if [ ! -d "$NPU_BACKEND_PATH" ]; then cat "$CASES/npu-run/overlap.stdout"; exit; fi
vendor_target vendor >target.json
place() {
  npu-tag --target ./target.json --force 'npu2=*_b' "$1" |
    npu-partition --strategy contiguous
}
place "$CASES/npu-run/meeting.json" >meeting.json
npu-run meeting.json --random-inputs 1 --bench 20 --verify cpu >report
echo "exit $?, overlap $(sed -n 's/^  "overlap": \([a-z]*\).*/\1/p' report), verified: $(comparison verify <report)"
npu-compile meeting.json -o meeting.npub
npu-run meeting.npub --random-inputs 1 --trace trace.json >report
echo "exit $?, overlap $(sed -n 's/^  "overlap": \([a-z]*\).*/\1/p' report)"
sed 's/meet_/part_/g' "$CASES/npu-run/meeting.json" >alone.json
place alone.json >alone.part.json
npu-run alone.part.json --random-inputs 1 --outputs together.safetensors >/dev/null
npu-run alone.part.json --random-inputs 1 --no-overlap --outputs alone.safetensors >report
echo "exit $?, overlap $(sed -n 's/^  "overlap": \([a-z]*\).*/\1/p' report)"
cmp together.safetensors alone.safetensors && echo "same outputs"
