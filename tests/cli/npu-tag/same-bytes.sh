# SPDX-License-Identifier: Apache-2.0
# Same input, same bytes: on repetition, from stdin, through -o, and when run on its own output.
for name in mlp gru multi_output lifted_constants dtypes empty; do
  model=$TESTDATA/models/small/$name.json
  npu-tag "$model" >first.json
  npu-tag "$model" | cmp first.json -
  npu-tag "$model" -o second.json
  cmp first.json second.json
  npu-tag first.json | cmp first.json -
  npu-tag --keep-tags first.json >kept.json
  npu-tag --keep-tags kept.json | cmp kept.json -
  # stdin has no folder, so a document with a relative weights_file is read as a file
  (cd "$TESTDATA/models/small" && npu-tag <$name.json && npu-tag $name.json) >both.json
  lines=$(($(wc -l <both.json) / 2))
  head -n $lines both.json >a
  tail -n $lines both.json | cmp a -
done
