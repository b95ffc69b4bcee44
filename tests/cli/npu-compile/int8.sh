# SPDX-License-Identifier: Apache-2.0
# A quantized model on a CPU without exact int8 products: the report says why a group is computed with floats, and the
# numbers stay the same.
. "$CASES/lib.sh"
model=$CASES/npu-run/quantized.json
NPU_MAX_ISA=generic npu-compile --no-cache --report "$model" --random-weights 1 -o float.npub 2>&1 >/dev/null | grep "is split"
npu-run -q "$model" --devices cpu --random-weights 1 --random-inputs 1 --outputs cpu.safetensors >report
NPU_MAX_ISA=generic npu-run -q float.npub --random-inputs 1 --expect cpu.safetensors >report
echo "exit $?, expect $(comparison expect <report)"
npu-compile -q --no-cache "$model" --random-weights 1 --assert 'int8_macs<=1' -o native.npub
NPU_MAX_ISA=generic npu-run float.npub --random-inputs 1 --report 2>&1 >report | grep "int8 multiply-adds" | tr -s " "
number int8_macs <report | sed "s,^0\.0$,0,"
# Weights of 7 bits with uint8, which sums of two products in 16 bits hold, are int8 without VNNI, too, and exact: a target that
# asks for them, and integers that stand in a model of ONNX.
cp "$TESTDATA"/models/small/residual.* .
npu-tag -t host residual.json | sed 's/"backend": *"onednn",/& "quantization": {"weights": "int7 per-channel symmetric"},/' >tagged.json
npu-profile residual.json --calibrate residual.inputs.safetensors -o residual.ranges.json
npu-align --quantize int8 --ranges residual.ranges.json --onnx-qdq small.onnx tagged.json -o small.json
npu-align --quantize int8 --ranges residual.ranges.json residual.json -o whole.json
npu-run -q small.onnx --devices cpu --inputs residual.inputs.safetensors --outputs cpu.safetensors >report
for level in generic avx2; do
  for model in small.json small.onnx; do
    NPU_MAX_ISA=$level npu-compile -q --no-cache $model --assert 'int8_macs>=0.9' -o $level.npub
    status=$?
    NPU_MAX_ISA=$level npu-run -q $level.npub --inputs residual.inputs.safetensors --expect cpu.safetensors --atol 1e-3 >report
    echo "$level $model: exit $status, expect $(comparison expect <report)"
  done
  NPU_MAX_ISA=$level npu-compile -q --no-cache whole.json --assert 'int8_macs==0' -o whole.npub
  echo "$level whole.json: exit $?"
done
# Without a target that says so, weights have 7 bits where the CPU wants them, and the report tells.
for level in generic avx2; do
  NPU_MAX_ISA=$level npu-align --quantize int8 -t host --ranges residual.ranges.json --report residual.json -o auto.json 2>&1 |
    grep "7 bits"
  grep -o '"weights": *"int[^"]*"' auto.json
  NPU_MAX_ISA=$level npu-compile -q --no-cache auto.json --assert 'int8_macs>=0.9' -o auto.npub
  echo "$level auto: exit $?"
done
