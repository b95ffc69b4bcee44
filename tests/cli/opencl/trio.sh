# SPDX-License-Identifier: Apache-2.0
# One model over three kinds of devices: the results are those of the CPU, and each device has a part.
. "$CASES/lib.sh"
need_opencl 1
path=$TESTDATA/models/small/mlp
npu-tag --target trio --force 'gpu=addmm' --force 'cpu=gelu*' "$path.json" |
  npu-fuse | npu-partition >plan.json
npu-run plan.json --weights "$path.safetensors" --inputs "$path.inputs.safetensors" --expect "$path.outputs.safetensors" \
  --rtol 1e-3 --atol 1e-4 >report
echo "exit $?, $(comparison expect <report)"
grep -o '"kind":"partition","id":[0-9]*,"device":"[a-z]*"' report
