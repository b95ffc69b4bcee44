# SPDX-License-Identifier: Apache-2.0
# The counts published for the contiguous strategy on real models.
contiguous() {
  model=$1
  count=$2
  shift 2
  npu-tag --target pytorch-apple "$TESTDATA/models/$model.json" "$@" |
    npu-partition --strategy contiguous --assert "partitions==$count" >plan.json && echo "$model $*: $count"
}
contiguous mobilenet_v2 71
contiguous resnet50 33 --force 'cpu=aten.add_.*'
contiguous inception_v3 19
contiguous inception_v3 45 --force 'cpu=aten.cat.*'
