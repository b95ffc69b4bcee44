# SPDX-License-Identifier: Apache-2.0
# Sorting and quantization on the OpenCL device, with the kernels of both kinds of tiles, and scatters that add up: what the
# CPU gives.
. "$CASES/lib.sh"
need_opencl many
for tiles in cpu gpu; do
  npu-tag --target opencl --print-target | sed "s/\"backend\": *\"opencl\"/&, \"options\": {\"tiles\": \"$tiles\"}/" >target.json
  for model in opencl/sorts npu-run/quantized; do
    npu-tag --target ./target.json "$CASES/$model.json" | npu-fuse | npu-partition >plan.json
    npu-run plan.json --random-inputs 3 --verify cpu >report
    echo "$model with tiles of a $tiles: exit $?, $(comparison verify <report)"
  done
done
npu-tag --target opencl "$CASES/opencl/scatters.json" | npu-fuse | npu-partition >plan.json
npu-run plan.json --random-inputs 3 --verify cpu >report 2>beta # libtorch warns
echo "scatters: exit $?, $(comparison verify <report)"
tr -d ' ' <plan.json | grep -o '"device":"[a-z]*"' | sort -u
