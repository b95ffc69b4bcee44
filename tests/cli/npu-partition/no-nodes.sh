# SPDX-License-Identifier: Apache-2.0
# A graph without nodes has no partitions and no steps.
npu-tag "$TESTDATA/models/small/empty.json" --target "$CASES/npu-tag/small_target.json" >tagged.json
for strategy in contiguous convex; do
  npu-partition -s $strategy tagged.json | sed -n '/"strategy"/,$p'
done
