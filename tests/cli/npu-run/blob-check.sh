# SPDX-License-Identifier: Apache-2.0
# A backend that looks at blobs is asked before one of a bundle is loaded, and before one of the cache is taken: what does
# not fit is refused or compiled again, what could be faster is told, whatever the fingerprint is.
. "$CASES/lib.sh"
NPU_BACKEND_PATH=$(dirname "$(command -v npu-run)")/../lib/npu/test-backends
export NPU_BACKEND_PATH
if [ ! -d "$NPU_BACKEND_PATH" ]; then cat "$CASES/npu-run/blob-check.stdout"; exit; fi
vendor_target wrap >target.json
npu-tag --target ./target.json "$CASES/npu-compile/branches.json" | npu-partition -o part.json
npu-compile part.json --random-weights 0 --no-cache -o out.npub
run() { try_silent npu-run out.npub --random-inputs 0; }
for verdict in 0 1 2 9; do
  echo "verdict $verdict:"
  export WRAP_FAULT=blob=$verdict
  run
done
echo "another fingerprint, without and with a backend that looks at blobs:"
export WRAP_FAULT=fingerprint=older
npu-compile part.json --random-weights 0 --no-cache -o out.npub
export WRAP_FAULT=no
run | sed 's/here it is .*; compile/here it is ..; compile/'
export WRAP_FAULT=blob=0
run
echo "the cache:"
mkdir cache
hits() { npu-run part.json --random-weights 0 --random-inputs 0 --cache-dir cache | grep -o '"cache_[a-z]*": *[0-9]*' | tr '\n' ' '; }
for verdict in 0 0 1 2 9; do
  export WRAP_FAULT=blob=$verdict
  echo "verdict $verdict: $(hits)"
done
echo "options that no backend of the device states:"
unset WRAP_FAULT
sed 's/"backend": "wrap"/&, "options": {"sped": 1}/' target.json >misspelt.json
npu-tag --target ./misspelt.json "$CASES/npu-compile/branches.json" | npu-partition -o part.json
try_silent npu-run part.json --random-weights 0 --random-inputs 0 --no-cache
for keys in '{"speed": {"type": "integer"}, "power": {}}' '{"sped": {}}' '[]' '{'; do
  export WRAP_FAULT="options=$keys"
  echo "$keys:"
  try_silent npu-run part.json --random-weights 0 --random-inputs 0 --no-cache | sed 's|: /[^:]*/|: |'
done
