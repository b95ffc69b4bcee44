# SPDX-License-Identifier: Apache-2.0
# A model with states makes steps: as on another device with states of its own, and the same bits if they are saved
# between two of them and go on in another process.
. "$CASES/lib.sh"
model=$CASES/npu-run/steps.json
paths() { tr -d ' \n' <"$1" | grep -o '"name":"[a-z]*","path":"[a-z_]*"' | tr -d '"' | paste -sd' '; }
for device in cpu npu,cpu; do
  npu-run -q --devices $device "$model" --steps 6 --random-inputs 1 --outputs whole.npy --verify cpu \
    --assert 'state_copied_bytes==0' --assert 'state_transfer_bytes==0' --assert 'state_bytes==40' --assert 'position==6' \
    >report
  echo "$device: exit $?, verified $(comparison verify <report), $(paths report)"
  npu-run -q --devices $device "$model" --steps 4 --random-inputs 1 --state-out s.safetensors >report
  npu-run -q --devices $device "$model" --steps 2 --random-inputs 5 --state-in s.safetensors --outputs rest.npy \
    --assert 'position==6' >report
  echo "saved and continued: exit $?"
  tail -c 16 whole.npy >a && tail -c 16 rest.npy >b && cmp a b
done
npu-compile -q --devices cpu "$model" -o steps.npub
npu-run -q steps.npub --steps 2 --random-inputs 5 --state-in s.safetensors --assert 'state_copied_bytes==0' >report
echo "a bundle: exit $?, $(paths report)"
npu-run -q --devices cpu "$model" --random-inputs 1 --assert 'position==1' >report
echo "one step: exit $?"
echo "what does not fit:"
try_silent npu-run -q --devices cpu "$model" --random-inputs 1 --bench 2
npu-run -q --devices cpu "$TESTDATA/models/small/mlp.json" --random-weights 0 --random-inputs 1 --outputs other.safetensors >report
try_silent npu-run -q --devices cpu "$model" --random-inputs 1 --state-in other.safetensors
try_silent npu-run -q --devices cpu "$TESTDATA/models/small/mlp.json" --random-weights 0 --random-inputs 1 --steps 2
