# SPDX-License-Identifier: Apache-2.0
# convex never needs more partitions than contiguous, nor lists a tensor twice for one device.
. "$CASES/lib.sh"
for name in mobilenet_v2 resnet18 resnet50 inception_v3 vit_b_16 bert_base; do
  npu-tag --target pytorch-apple "$TESTDATA/models/$name.json" --force 'cpu=aten.add*' --quiet >tagged.json
  npu-partition -s contiguous tagged.json >contiguous.json
  npu-partition -s convex tagged.json >convex.json
  printf '%s: ' $name
  for strategy in contiguous convex; do
    printf '%s %s partitions, %s transfers, %s tensors, %s copied; ' $strategy \
      "$(number partitions <$strategy.json)" "$(number transfers <$strategy.json)" \
      "$(number transferred_tensors <$strategy.json)" "$(number copied_tensors <$strategy.json)"
  done
  echo
done
