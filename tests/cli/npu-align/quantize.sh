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
# The least time within an error: more error, less time; a bound that --verify proves, and a document that runs.
for error in 0 3e-5 1e-3; do
  npu-align --quantize mixed --max-error $error --ranges residual.ranges.json residual.json -o mixed.json --report \
    --assert "predicted_error<=$error" --assert 'gap<=0.01' --assert 'predicted_us<=1e6' 2>report
  echo "exit $?, $(sed -n '/^ops: int8 0,/s/.*/all float/p; /^ops:.* float 0;/s/.*/all int8/p; /^ops: int8 [1-9].* float [1-9]/s/.*/both/p' report)"
  npu-align --verify mixed.json | sed 's/[0-9]\{1,\}/N/g'
  npu-run -q --devices cpu mixed.json --inputs residual.inputs.safetensors --expect residual.outputs.safetensors --atol 0.03 >report
  echo "cpu: exit $?, $(comparison expect <report)"
done
npu-profile residual.json --quick --runs 2 --threads 1 -o table.json
npu-align --quantize mixed --max-error 1e-3 --profile table.json --ranges residual.ranges.json residual.json | npu-align --verify |
  sed 's/[0-9]\{1,\}/N/g'
npu-align --verify residual.q.json
try npu-align --verify residual.json
for option in --assert=gap==0 --report --explain --dot=x.dot --algorithm=greedy --weight=bytes --target=host; do
  npu-align --verify $option residual.q.json 2>&1 | head -n 1
done
sed 's/"cost": *\([0-9]*\)/"cost": 1\1/' mixed.json >forged.json
try npu-align --verify forged.json 2>&1 | sed 's/[0-9]\{2,\}/N/g'
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
try_silent npu-align --quantize mixed --ranges residual.ranges.json residual.json
try_silent $quantize residual.ranges.json --profile table.json residual.json
try_silent npu-align --ranges residual.ranges.json residual.json
refuse_all "$TESTDATA/bad/tensor_ranges/" "$TESTDATA"/bad/tensor_ranges/*.json -- npu-align --quantize int8 --ranges {} residual.json
exit 0
