# SPDX-License-Identifier: Apache-2.0
# --print-target writes a target file that is equivalent to the name.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/conv_kinds.json
for name in $(npu-tag --list-targets | sed -n '2,$s/ .*//p'); do
  npu-tag --target "$name" --print-target -o "$name.json"
  npu-tag --target "./$name.json" --print-target | cmp "$name.json" -
  npu-tag --target "$name" "$model" >by_name.json
  npu-tag --target "$name.json" "$model" | cmp by_name.json -
  mkdir -p folder/sub && cp "$name.json" folder/sub/no_extension
  npu-tag --target folder/sub/no_extension "$model" | cmp by_name.json -
done
npu-tag --target "$CASES/npu-tag/small_target.json" --print-target
