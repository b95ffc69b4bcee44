# SPDX-License-Identifier: Apache-2.0
# Larger boxes: fusion groups, blocks if nothing is fused, and partitions. Without --dot-level the size decides.
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat >tagged.json
npu-fuse tagged.json | npu-partition --dot plan.dot --dot-level group | npu-partition | grep -c '"kind"'
cat plan.dot
npu-partition tagged.json --dot plan.dot --dot-level group >with.json
npu-partition tagged.json | cmp with.json -
cat plan.dot
npu-partition tagged.json --dot plan.dot --dot-level partition >with.json
cat plan.dot
for model in small/mlp resnet18 bert_base; do
  npu-tag "$TESTDATA/models/$model.json" >tagged.json
  npu-fuse tagged.json >fused.json
  for document in tagged fused; do
    npu-partition $document.json --dot plan.dot >with.json
    echo "$model, $document: $(grep -c '^ *[nb][0-9]* \[label=' plan.dot) boxes in $(grep -c 'cluster_' plan.dot) clusters"
  done
done
