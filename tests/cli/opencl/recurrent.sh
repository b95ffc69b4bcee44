# SPDX-License-Identifier: Apache-2.0
# Recurrent layers, of several layers and in both directions, on the OpenCL device with the kernels of both kinds of tiles.
. "$CASES/lib.sh"
need_opencl many
for case in 'lstm cpu' 'gru gpu'; do
  model=${case% *}
  tiles=${case#* }
  path=$TESTDATA/models/small/$model
  npu-tag --target opencl --print-target | sed "s/\"backend\": *\"opencl\"/&, \"options\": {\"tiles\": \"$tiles\"}/" >target.json
  npu-tag --target ./target.json "$path.json" | npu-fuse | npu-partition >plan.json
  npu-run plan.json --weights "$path.safetensors" --inputs "$path.inputs.safetensors" --expect "$path.outputs.safetensors" \
    --rtol 1e-3 --atol 1e-4 >report
  echo "$model with tiles of a $tiles: exit $?, $(comparison expect <report), $(grep -c '"kind":"partition","id":[0-9]*,"device":"gpu"' report) part"
done
