# SPDX-License-Identifier: Apache-2.0
# Small models, as a whole on the cpu, against PyTorch's results; small_models_test.cpp runs all of them in one process.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
for name in lstm mlp_bf16; do
  npu-run -q --devices cpu "$small/$name.json" --inputs "$small/$name.inputs.safetensors" --expect "$small/$name.outputs.safetensors" >report
  echo "$name: exit $?, expect $(comparison expect <report), transfers $(number transfers <report)"
done
