# SPDX-License-Identifier: Apache-2.0
# A table of published form and sizes alone: the same plan twice, and one that holds.
. "$CASES/lib.sh"
cp "$TESTDATA/gnn/subgraphs.json" "$TESTDATA/gnn/published.json" .
try npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers --report -o plan.json >said
# The times of phases are never the same.
sed 's/[0-9.]* [kMG]*B$/SIZE/; s/^phase .*/phase ms share/; /^phase/,/^sum/s/ *[0-9.]* *[0-9.]* *%*$//' said
npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers >again.json 2>/dev/null
cmp plan.json again.json && echo same
try_silent npu-plan --verify plan.json
try npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers --select greedy \
  --assert 'load_gap<=0' -o greedy.json
try_silent npu-plan --verify greedy.json
# A bound between the best load and that of the greedy choice: the check finds a choice below it.
sed 's/"load_bound_ms": *[0-9.]*/"load_bound_ms": 1290/g' greedy.json >claims.json
try npu-plan --verify claims.json
npu-plan --verify plan.json >checked.json
grep proof checked.json
try_silent npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers --ratios 0.5 --top-k 3 \
  --interpolation nearest --devices cpu,gpu --assert 'load_ms_gpu>0' -o few.json
try_silent npu-plan --verify few.json
