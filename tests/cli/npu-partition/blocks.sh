# SPDX-License-Identifier: Apache-2.0
# --strategy blocks: stem, residual blocks or layers, tail, whether fused or not; nested blocks.
count() { npu-partition -s blocks "$@" | number blocks; }
. "$CASES/lib.sh"
for model in resnet18 resnet34 resnet50 mobilenet_v2 inception_v3 vit_b_16 bert_base; do
  npu-tag "$TESTDATA/models/$model.json" >tagged.json
  echo "$model: $(count tagged.json), fused $(npu-fuse tagged.json | count), depth 2 $(count --depth 2 tagged.json)"
done
npu-tag --force 'cpu=relu__3' "$TESTDATA/models/resnet18.json" | npu-partition -s blocks --report 2>&1 >part.json | sed -n '/^block /,/^$/p'
grep -c '"partitions":\[[0-9]*\]}' part.json
grep '"partitions":\[[0-9]*,' part.json
try npu-partition -s blocks --depth 0 tagged.json
try npu-partition -s blocks --depth 65 tagged.json
