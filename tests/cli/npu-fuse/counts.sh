# SPDX-License-Identifier: Apache-2.0
# Kernels of whole models: at most as many as published, and the savings of patterns that are off by default.
count() {
  npu-fuse --patterns "$1" "$TESTDATA/models/$2.json" | sed -n '/"metrics"/,$p' | tr -d ' \n' |
    sed 's/.*"groups":\([0-9]*\),"kernels":\([0-9]*\).*/\1 groups, \2 kernels/'
}
for model in resnet18 resnet34 resnet50 mobilenet_v2 inception_v3 bert_base vit_b_16; do
  for patterns in chain default default,concat-slices default,qkv-merge default,multi-head-attention; do
    echo "$model $patterns: $(count "$patterns" "$model")"
  done
done
