# SPDX-License-Identifier: Apache-2.0
# int8: which ops and why, the same bytes each time, results close to float on every path through the tools, and refusals.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
cp "$small"/residual.* "$small"/mlp.* .
for model in residual mlp; do
  npu-profile $model.json --calibrate $model.inputs.safetensors -o $model.ranges.json
  npu-align --quantize int8 --ranges $model.ranges.json --explain --report $model.json 2>&1 >$model.q.json
  npu-align --quantize int8 --ranges $model.ranges.json $model.json | cmp - $model.q.json && echo same
  npu-run -q --devices cpu $model.q.json --inputs $model.inputs.safetensors --expect $model.outputs.safetensors --atol 0.03 >report
  echo "cpu: exit $?, $(comparison expect <report)"
  npu-tag $model.q.json | npu-fuse | npu-partition |
    npu-run -q --inputs $model.inputs.safetensors --expect $model.outputs.safetensors --atol 0.03 >report
  echo "host: exit $?, $(comparison expect <report)"
  npu-tag $model.json | npu-align --quantize int8 --ranges $model.ranges.json | npu-fuse | npu-partition |
    npu-run -q --inputs $model.inputs.safetensors --expect $model.outputs.safetensors --atol 0.03 >report
  echo "tagged first: exit $?, $(comparison expect <report)"
done
for method in average percentile=99.9 entropy mse; do
  npu-align --quantize int8 --calibration $method --ranges residual.ranges.json residual.json |
    grep -o "\"calibration\": *\"[^\"]*\""
done
npu-align --quantize int8 --ranges residual.ranges.json --assert 'int8_macs>=0.95' residual.json >/dev/null
echo "exit $?"
quantize="npu-align --quantize int8 --ranges"
try_silent $quantize mlp.ranges.json --full mlp.json
try_silent $quantize mlp.ranges.json residual.json 2>&1 | sed 's/digest [0-9a-f]*/digest N/g'
try_silent $quantize residual.ranges.json residual.q.json
npu-tag residual.json | npu-fuse >fused.json
try_silent $quantize residual.ranges.json fused.json
try_silent $quantize missing.json residual.json
try_silent $quantize residual.ranges.json --calibration kl residual.json
try_silent $quantize residual.ranges.json --dot x.dot residual.json
try_silent npu-align --quantize int8 residual.json
try_silent npu-align --quantize int4 residual.json
try_silent npu-align --ranges residual.ranges.json residual.json
refuse_all "$TESTDATA/bad/tensor_ranges/" "$TESTDATA"/bad/tensor_ranges/*.json -- npu-align --quantize int8 --ranges {} residual.json
exit 0
