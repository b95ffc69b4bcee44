# SPDX-License-Identifier: Apache-2.0
# Devices that compute on integers alone: what keeps a model from them, biases of 32 bits, what runs elsewhere, and the numbers.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
for model in residual squeeze_excite; do
  cp "$small/$model".* .
  npu-profile -q $model.json --calibrate $model.inputs.safetensors --error-samples 0 -o $model.ranges.json
  for target in edge-tpu-like ethos-u-like; do
    echo "$model, $target:"
    npu-align --target $target --quantize int8 --ranges $model.ranges.json $model.json -o q.json
    echo "exit $?"
    npu-align --verify q.json
    echo "$(grep -c 'torch.int32' q.json) conversions of biases to and from integers"
    npu-run -q --devices cpu q.json --inputs $model.inputs.safetensors --expect $model.outputs.safetensors --atol 0.03 >report
    echo "cpu: exit $?, $(comparison expect <report)"
    # On a tagged document only what is on the device has to be int8.
    npu-tag --target $target $model.json | npu-align --quantize int8 --ranges $model.ranges.json |
      placement | awk '$2 == "cpu" { print "elsewhere:", $1 }'
  done
done
# What keeps a model from such devices.
cp "$small"/self_attention.* .
npu-profile -q self_attention.json --calibrate self_attention.inputs.safetensors --error-samples 0 -o ranges.json
try_silent npu-align --target ethos-u-like --quantize int8 --ranges ranges.json self_attention.json
try_silent npu-align --full --quantize int8 --ranges ranges.json self_attention.json
exit 0
