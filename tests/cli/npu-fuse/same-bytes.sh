# SPDX-License-Identifier: Apache-2.0
# Same input, same bytes: on repetition, from stdin, through -o, and when run on its own output.
for name in mlp gru multi_output lifted_constants dtypes empty self_attention in_place_view; do
  model=$TESTDATA/models/small/$name.json
  npu-tag "$model" | npu-fuse >first.json
  npu-tag "$model" | npu-fuse -o second.json
  cmp first.json second.json
  npu-fuse first.json | cmp first.json -
  npu-fuse <first.json | cmp first.json -
done
