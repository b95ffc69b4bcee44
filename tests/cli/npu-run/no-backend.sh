# SPDX-License-Identifier: Apache-2.0
# A program that finds no backends reports where it searched and what to set.
mkdir -p bin
cp "$(command -v npu-run)" bin/npu-run
mkdir -p libexec/npu
cp "$(dirname "$(command -v npu-run)")/../libexec/npu/probe-library" libexec/npu
model=$CASES/npu-run/two_inputs.json
run() {
  bin/npu-run "$model" --devices cpu --random-inputs 0 2>&1 >report | sed "s|$PWD|HERE|g; s|does not load: .*|does not load: ...|"
  if [ -s report ]; then echo "wrote output"; fi
}
echo "unset:"
run
echo "a folder without any, two folders:"
mkdir empty other
NPU_BACKEND_PATH=empty
export NPU_BACKEND_PATH
run
NPU_BACKEND_PATH=:empty::missing:other:
run
echo "not a library:"
echo text >other/npu_backend_aten.so
run
: >other/npu_backend_aten.so
run
rm other/npu_backend_aten.so
mkdir other/npu_backend_aten.so
run
echo "no frontend either, for a model of another format:"
bin/npu-run "$TESTDATA/onnx/mlp.onnx" --random-inputs 0 2>&1 | sed "s|$PWD|HERE|g"
