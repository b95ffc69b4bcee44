# SPDX-License-Identifier: Apache-2.0
# The shipped structures go through tag and partition with every target and strategy, and the plans
# hold together: npu-run reads them and then asks for the weights.
. "$CASES/lib.sh"
for model in "$TESTDATA"/models/*.json; do
  for target in host pytorch-apple; do
    for strategy in contiguous convex; do
      npu-tag "$model" --target $target | npu-partition -s $strategy | npu-run --random-inputs 0 2>&1 |
        sed "s|weight '.*' has|weight 'W' has|; s|^|$(basename "$model") $target $strategy: |"
    done
  done
done
