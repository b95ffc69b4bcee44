# SPDX-License-Identifier: Apache-2.0
# Small graphs are cut by METIS unless asked otherwise; either way threads and processes change nothing.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
plan() { npu-plan graph.mtx --model graphsage.json --profile profile.json --pad 16 -k 2..6 --seeds 3 "$@" 2>err || cat err; }
plan -o plan.json
for threads in 1 3; do
  for method in auto metis; do
    plan --partitioner $method --threads $threads --partition-file plan.part >out.json
    cmp -s plan.json out.json && echo "$method, $threads at once: the same plan"
  done
  plan --partitioner multilevel --threads $threads -o multilevel.json --report
  grep '^parts by' err
  cp multilevel.json $threads.json
done
cmp 1.json 3.json && echo "multilevel: the same plan"
grep -o '"levels": [0-9]*\|"coarsest_nodes": [0-9]*' multilevel.json
grep -c '"levels"' plan.json
npu-plan --verify multilevel.json | grep '"ok"'
try npu-plan graph.mtx --partitioner kway
try npu-plan graph.mtx --threads -1
