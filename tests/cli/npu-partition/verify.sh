# SPDX-License-Identifier: Apache-2.0
# --verify checks a plan and its proof, and reports what is wrong with a changed one.
. "$CASES/lib.sh"
npu-tag --target "$CASES/npu-tag/small_target.json" "$CASES/npu-tag/reasons.json" >tagged.json
npu-partition tagged.json >convex.json
npu-partition -s mincut tagged.json >mincut.json
try npu-partition --verify convex.json
try npu-partition --verify mincut.json
sed 's/"lower_bound": *[0-9]*/"lower_bound": 999999999999/' mincut.json >changed.json
try npu-partition --verify changed.json
sed 's/"predicted_us": *[0-9.]*/"predicted_us": 0.125/' mincut.json >changed.json
try npu-partition --verify changed.json
sed 's/"certificate"/"certificates"/' mincut.json >changed.json
try npu-partition --verify changed.json
try npu-partition --verify tagged.json
for option in -sconvex --min-nodes=1 --depth=2 --min-flops=1 --max-partitions=9 --memory-limit=1 -k2 --imbalance=0.1 \
  --best-effort --seed=1 --what-if --dot=x.dot --report '--assert=partitions==2'; do
  npu-partition --verify $option convex.json 2>&1 | head -n 1
done
try npu-partition --verify --report convex.json
