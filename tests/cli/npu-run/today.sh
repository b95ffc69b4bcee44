# SPDX-License-Identifier: Apache-2.0
# Models as PyTorch 2.11 and transformers 5 export them: whole on the first device from either exporter, and right.
. "$CASES/lib.sh"
models=$TESTDATA/models/today
onnx=$TESTDATA/onnx/today
# whole FILE: by the tables of both targets
whole() {
  for target in host opencl; do
    npu-tag -q -t "$target" --assert left_device==0 "$1" -o /dev/null || echo "${1##*/} leaves the first device of $target"
  done
}
# right FILE NAME: without another device to fall back to
right() {
  npu-run -q --devices npu "$1" --inputs "$models/$2.inputs.safetensors" --expect "$models/$2.outputs.safetensors" >report
  echo "${1##*/} exit $? $(comparison expect <report)"
}
for file in "$models"/*.json "$onnx"/*.onnx; do
  name=${file##*/}
  whole "$file"
  right "$file" "${name%.*}"
done
