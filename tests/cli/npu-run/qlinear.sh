# SPDX-License-Identifier: Apache-2.0
# Ops of ONNX with quantized operands: exact on cpu, and within a step on npu, which runs them all. Output m is a product of
# integers that are quantized by a scale of their own, in which a step counts more than once.
. "$CASES/lib.sh"
cp "$TESTDATA/corpus/onnx/quantized" model.onnx
npu-tag model.onnx | placement | awk '$2 == "cpu" { print }'
npu-run -q model.onnx --devices cpu --random-inputs 3 --outputs exact.safetensors >report
echo "cpu: exit $?"
npu-tag model.onnx | npu-fuse | npu-partition |
  npu-run -q --random-inputs 3 --expect exact.safetensors --rtol 0 --atol 1 >report 2>/dev/null
sed -n 's/.*{"name":"\([khv]\)","ok":\([a-z]*\).*/\1 \2/p' report
npu-tag model.onnx | npu-fuse | grep -c '"pattern": *"quantized"'
