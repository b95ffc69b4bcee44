# SPDX-License-Identifier: Apache-2.0
# Every small model, as a whole on the cpu, against PyTorch's results.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
for model in "$small"/*.json; do
  name=$(basename "$model" .json)
  npu-run -q --devices cpu "$model" --inputs "$small/$name.inputs.safetensors" --expect "$small/$name.outputs.safetensors" >report
  echo "$name: exit $?, expect $(comparison expect <report), transfers $(number transfers <report)"
done
