# SPDX-License-Identifier: Apache-2.0
# Steps of a model with states on the OpenCL device: what is overwritten in part lies in one buffer, what is replaced as a whole
# in two that take turns. Nothing is copied, and nothing crosses to the host.
. "$CASES/lib.sh"
need_opencl 3
npu-tag --target opencl "$CASES/npu-run/steps.json" | npu-fuse | npu-partition >plan.json
paths() { tr -d ' \n' <"$1" | grep -o '"name":"[a-z]*","path":"[a-z_]*"' | tr -d '"' | paste -sd' '; }
steps() { npu-run -q plan.json --assert 'state_copied_bytes==0' --assert 'state_transfer_bytes==0' "$@" >report; }
steps --steps 6 --random-inputs 1 --outputs whole.npy --verify cpu --assert 'position==6' --assert 'state_bytes==40'
echo "exit $?, verified $(comparison verify <report), $(paths report)"
steps --steps 4 --random-inputs 1 --state-out s.safetensors
steps --steps 2 --random-inputs 5 --state-in s.safetensors --outputs rest.npy --assert 'position==6'
echo "saved and continued: exit $?"
tail -c 16 whole.npy >a && tail -c 16 rest.npy >b && cmp a b
