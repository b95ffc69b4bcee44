# SPDX-License-Identifier: Apache-2.0
# Small models on both devices, ops whose name begins with a to f forced to the cpu, against PyTorch's results and an all-cpu
# run; small_models_test.cpp runs all of them in one process.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
for name in multi_output residual; do
  npu-tag "$small/$name.json" --force 'cpu=aten.[a-f]*' --quiet | npu-partition |
    npu-run --inputs "$small/$name.inputs.safetensors" --expect "$small/$name.outputs.safetensors" --verify cpu >report
  echo "$name: exit $?, expect $(comparison expect <report), verify $(comparison verify <report)"
done
