# SPDX-License-Identifier: Apache-2.0
# Same input, same bytes: on repetition, from stdin, through -o, and when run on its own output.
for name in mlp gru multi_output lifted_constants dtypes empty; do
  npu-tag "$TESTDATA/models/small/$name.json" --force 'cpu=aten.[abc]*' --quiet >tagged.json
  for strategy in contiguous convex; do
    npu-partition -s $strategy tagged.json >first.json
    npu-partition -s $strategy <tagged.json | cmp first.json -
    npu-partition -s $strategy tagged.json -o second.json
    cmp first.json second.json
    npu-partition -s $strategy first.json | cmp first.json -
  done
done
