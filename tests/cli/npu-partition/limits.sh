# SPDX-License-Identifier: Apache-2.0
# Limits hold with every strategy that considers devices.
. "$CASES/lib.sh"
npu-tag --target pytorch-apple "$TESTDATA/models/inception_v3.json" --force 'cpu=aten.cat.*' >tagged.json
for strategy in contiguous convex mincut; do
  for limit in 25 9 3 1; do
    npu-partition -s $strategy --max-partitions $limit tagged.json >plan.json
    echo "$strategy: at most $limit: $(number partitions <plan.json) partitions, $(number predicted_us <plan.json) us"
    npu-partition --verify plan.json >checked || cat checked
  done
done
for flops in 1e6 1e9 1e12; do
  npu-partition --min-flops $flops tagged.json >plan.json
  echo "at least $flops FLOP: $(number partitions <plan.json) partitions, npu $(number partitions_npu <plan.json)"
done
for bytes in 20000000 50000000; do
  npu-partition --memory-limit $bytes tagged.json >plan.json
  npu-partition --verify plan.json >checked
  echo "at most $bytes bytes: $(number partitions <plan.json) partitions"
done
