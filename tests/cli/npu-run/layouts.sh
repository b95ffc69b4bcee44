# SPDX-License-Identifier: Apache-2.0
# Three partitions of one device agree on layouts: nothing is reordered between them, and the outputs are those of one partition.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -e "$lib/test-backends/npu_backend_wrap.so" ]; then cat "$CASES/npu-run/layouts.stdout"; exit; fi
model=$CASES/npu-run/layout_chain.json
npu-tag -t host "$model" >tagged.json
npu-partition tagged.json | npu-run --random-weights 0 --random-inputs 1 --outputs one.safetensors >/dev/null
npu-partition -s metis -k 3 --imbalance 1.5 tagged.json -o parts.json
npu-compile --random-weights 0 parts.json -o m.npub
npu-compile --info m.npub >info
grep -o '"layouts":{[^}]*}' info | sed 's/onednn:[^"]*/LAYOUT/g'
echo "reorders of values between partitions: $(grep -c '"\(reads\|writes\)":"\(first\|second\)' info)"
npu-run m.npub --random-inputs 1 --outputs split.safetensors --expect one.safetensors >report
echo "exit $?, expect $(comparison expect <report)"
echo "values between partitions can be looked at:"
npu-run m.npub --random-inputs 1 --tap first --tap second --outputs taps.safetensors >/dev/null
npu-partition tagged.json | npu-run --random-weights 0 --random-inputs 1 --tap first --tap second --expect taps.safetensors >report
echo "exit $?, expect $(comparison expect <report)"
echo "the second time nothing is opened:"
npu-compile -vv --random-weights 0 parts.json -o again.npub 2>&1 | grep -c "opened with"
cmp m.npub again.npub && echo "the same bundle"
echo "layouts with another backend's name are none:"
NPU_BACKEND_PATH=$lib/test-backends
export NPU_BACKEND_PATH
sed 's/"backend": *"onednn"/"backend":"wrap"/' parts.json >wrapped.json
npu-run wrapped.json --random-weights 0 --random-inputs 1 --expect one.safetensors >report
echo "exit $?, expect $(comparison expect <report)"
WRAP_FAULT=layouts npu-run wrapped.json --random-weights 0 --random-inputs 1 2>&1 >/dev/null | sed 's/ 0\.1\.0[^:]*:/ VERSION:/; s/wrap [^:]*:/wrap VERSION:/'
echo "layouts that are refused after all, by compile and when the programs are loaded:"
for fault in deny lax; do
  WRAP_FAULT=$fault-layouts npu-run --no-cache -v wrapped.json --random-weights 0 --random-inputs 1 --expect one.safetensors 2>log >report
  echo "exit $?, expect $(comparison expect <report)"
  sed -n 's/.*\(compiled again with row-major values: .*\)/\1/p' log | sed "s/layout '[^']*' for .*/layout LAYOUT/" | sort -u
done
WRAP_FAULT=deny-layouts npu-compile --no-cache --random-weights 0 wrapped.json -o denied.npub
npu-compile --info denied.npub | grep -c '"layouts"'
WRAP_FAULT=lax-layouts npu-compile --no-cache --random-weights 0 wrapped.json -o lax.npub
npu-compile --info lax.npub | grep -c '"layouts"'
WRAP_FAULT=lax-layouts npu-run lax.npub --random-inputs 1 --expect one.safetensors >report
echo "exit $?, expect $(comparison expect <report)"
unset NPU_BACKEND_PATH
echo "a value that skips a partition on another device has a layout, though the plan lists a transfer of it:"
npu-tag -t host --force cpu=away "$CASES/npu-run/layout_skip.json" >tagged.json
npu-partition tagged.json | npu-run --random-weights 0 --random-inputs 1 --outputs one.safetensors >/dev/null
npu-partition -s contiguous tagged.json | npu-compile --random-weights 0 -o skip.npub
npu-compile --info skip.npub | grep -o '"layouts":{[^}]*}' | sed 's/onednn:[^"]*/LAYOUT/g'
npu-run skip.npub --random-inputs 1 --expect one.safetensors >report
echo "exit $?, expect $(comparison expect <report)"
