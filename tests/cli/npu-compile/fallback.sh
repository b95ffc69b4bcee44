# SPDX-License-Identifier: Apache-2.0
# A partition that its backend refuses goes to the next device, with the reason.
. "$CASES/lib.sh"
NPU_BACKEND_PATH=$(dirname "$(command -v npu-run)")/../lib/npu/test-backends
export NPU_BACKEND_PATH
if [ ! -d "$NPU_BACKEND_PATH" ]; then cat "$CASES/npu-compile/fallback.stdout"; exit; fi
cp "$CASES/npu-compile/branches.json" "$CASES/../unit/device/vendor_target.json" .
npu-tag --target ./vendor_target.json branches.json | npu-partition -o part.json
npu-compile --random-weights 0 part.json -o taken.npub
npu-run taken.npub --random-inputs 0 --verify cpu >report
comparison verify <report
export WRAP_FAULT=refuse=aten.neg.default
echo "refused:"
try npu-compile --no-cache --random-weights 0 part.json -o moved.npub
npu-compile --info moved.npub | grep -o '"device":"[a-z0-9]*","backend":"[a-z]*"'
npu-run moved.npub --random-inputs 0 --verify cpu >report
comparison verify <report
echo "its document says so:"
npu-compile --no-cache --random-weights 0 -q --assert 'refused>=1' part.json | tr -d '\000' |
  grep -a -o '"device_reason": *"[^"]*"' | sort -u
echo "strict:"
try npu-compile --no-cache --random-weights 0 --no-fallback part.json -o strict.npub
if [ -e strict.npub ]; then echo "wrote output"; fi
