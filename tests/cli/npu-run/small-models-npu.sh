# SPDX-License-Identifier: Apache-2.0
# Models of which the npu runs most, as npu-tag places them, with the plans of both strategies.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
run() {
  npu-tag "$small/$1.json" | npu-partition -s "$2" |
    npu-run --inputs "$small/$1.inputs.safetensors" --expect "$small/$1.outputs.safetensors" >report
  echo "$1, $2: exit $?, expect $(comparison expect <report)"
}
for name in residual residual_bf16 depthwise inception mlp mlp_bf16 bert_tiny; do run $name convex; done
run residual contiguous
run mlp_bf16 contiguous
