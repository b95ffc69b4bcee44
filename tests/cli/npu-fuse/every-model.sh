# SPDX-License-Identifier: Apache-2.0
# Every model, tagged and not, with all patterns: npu-partition finds the groups convex.
for model in "$TESTDATA"/models/*.json "$TESTDATA"/models/small/*.json; do
  for patterns in default all chain; do
    npu-tag --target pytorch-apple "$model" 2>/dev/null | npu-fuse -p $patterns | npu-partition >plan.json || echo "$model $patterns"
    npu-fuse -p $patterns "$model" | npu-tag | npu-fuse -p $patterns | npu-partition --strategy blocks >plan.json || echo "$model $patterns"
  done
done
