# SPDX-License-Identifier: Apache-2.0
# Every small model on both devices, ops whose name begins with a to f forced to the cpu, against
# PyTorch's results and an all-cpu run.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
for model in "$small"/*.json; do
  name=$(basename "$model" .json)
  npu-tag "$model" --force 'cpu=aten.[a-f]*' --quiet | npu-partition |
    npu-run --inputs "$small/$name.inputs.safetensors" --expect "$small/$name.outputs.safetensors" --verify cpu >report
  echo "$name: exit $?, expect $(comparison expect <report), verify $(comparison verify <report)"
done
