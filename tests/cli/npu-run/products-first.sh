# SPDX-License-Identifier: Apache-2.0
# A model whose product with weights comes before the layer that reads edges: the same result by shorter rows, which are what
# ranks send each other, and nothing before the layer that has the product alone.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
plan() { npu-plan -q graph.mtx --profile profile.json --partitioner metis --devices cpu --select greedy -k 8 "$@"; }
plan --model narrow.json -o plan.json
npu-run -q plan.json --features x.npy --threads 1 --device=cpu=onednn --outputs narrow.npy >report.json || echo "exit $?"
plan --model narrow_first.json -o plan.json
npu-run -q plan.json --features x.npy --threads 1 --device=cpu=onednn --expect narrow.npy >report.json || echo "exit $?"
crossing() { sed -n '/^  "ranks": {/,/^    "ranks": /p' "$1" | tr -d ' \n' | grep -o '"row_bytes":\[[0-9,]*\],"rows":[0-9]*,"halo":[0-9]*,"bytes":[0-9]*'; }
for model in narrow narrow_first; do
  for ranks in 1 4; do
    plan --model $model.json --ranks $ranks -o $model$ranks.json
    npu-plan --verify $model$ranks.json | grep -c '"ok": true'
  done
  crossing ${model}4.json
done
plan --model narrow_first.json --ranks 4 --rank-bandwidth 1M -o link.json
npu-plan --verify link.json | grep -c '"ok": true'
tr -d ' \n' <link.json | grep -o '"exchange_ms":\[[0-9.]*,'
sed 's/"row_bytes": *\[0,/"row_bytes":[24,/; s/"bytes": *1536/"bytes":3072/' narrow_first4.json >changed.json
cp narrow_first4.part changed.part
try npu-plan --verify changed.json
npu-run -q narrow_first1.json --features x.npy --threads 1 --device=cpu=onednn --outputs one.npy >report.json || echo "exit $?"
plan --model narrow_first.json --ranks 1 --rank-memory 15k -o little.json
npu-run -q little.json --features x.npy --threads 1 --device=cpu=onednn --outputs little.npy >report.json || echo "exit $?"
cmp one.npy little.npy && echo "the same bits part by part"
need_mpi
for exchange in cover features; do
  plan --model narrow_first.json --ranks 4 --exchange $exchange -o four.json
  together 4 npu-run -q four.json --features x.npy --threads 1 --device=cpu=onednn --outputs four.npy >four.report.json || echo "exit $?"
  # Sums have another order than by features alone.
  plan --model narrow_first.json --ranks 1 --exchange $exchange -o one.json
  npu-run -q one.json --features x.npy --threads 1 --device=cpu=onednn --outputs one.npy >report.json || echo "exit $?"
  cmp one.npy four.npy && echo "$exchange: the same bits on four ranks"
  tr -d ' \n' <four.report.json | grep -o '"exchanges":[0-9]*,"rows":[0-9]*,"planned_rows":[0-9]*,"bytes":[0-9]*'
done
