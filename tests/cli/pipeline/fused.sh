# SPDX-License-Identifier: Apache-2.0
# npu-tag | npu-fuse | npu-partition | npu-run: groups change no result, whole on one device and split; small_models_test.cpp
# does the same with more models in one process.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
for name in residual self_attention; do
  for strategy in convex blocks; do
    npu-tag "$small/$name.json" --force 'cpu=aten.[a-f]*' --quiet | npu-fuse -p all | npu-partition -s $strategy |
      npu-run --inputs "$small/$name.inputs.safetensors" --expect "$small/$name.outputs.safetensors" >report
    echo "$name $strategy: exit $?, expect $(comparison expect <report)"
  done
done
