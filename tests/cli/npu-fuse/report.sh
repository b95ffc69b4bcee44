# SPDX-License-Identifier: Apache-2.0
# --report goes to stderr; the document is the same.
for model in resnet18 mobilenet_v2 bert_base; do
  npu-fuse --report "$TESTDATA/models/$model.json" >with.json
  npu-fuse "$TESTDATA/models/$model.json" | cmp with.json -
done
