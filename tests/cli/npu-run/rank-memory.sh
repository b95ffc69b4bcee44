# SPDX-License-Identifier: Apache-2.0
# Ranks that may hold less than their share keep rows in files and read them part by part: the same bits.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
plan() { npu-plan -q graph.mtx --profile profile.json --partitioner metis --devices cpu,npu --select greedy --pad 16 -k 8 "$@"; }
# What each rank has read: blocks, bytes, and how often a row was read in a layer.
reads() { tr -d ' \n' <report.json | grep -o '"planned_bytes":[0-9]*\|"blocks_read":[0-9]*,"bytes_read":[0-9]*,"reads_of_row":[0-9.]*'; }
for model in graphsage gcn gat; do
  plan --model $model.json --ranks 1 -o plan.json
  npu-run plan.json --features x.npy --threads 1 --outputs all.npy >report.json 2>err || cat err
  # Of GAT only features cross, so that there are no sums to hold.
  limit=11k
  [ $model = gat ] && limit=9500
  plan --model $model.json --ranks 1 --rank-memory $limit -o little.json
  npu-plan --verify little.json | grep '"ok"'
  npu-run little.json --features x.npy --threads 1 --outputs parts.npy --bench 1 >report.json 2>err || cat err
  cmp all.npy parts.npy && echo "$model: the same bits"
  reads
  grep -c '"kind"' report.json
done
npu-plan graph.mtx --profile profile.json --partitioner metis --devices cpu,npu --select greedy --pad 16 -k 8 --model graphsage.json --ranks 2 \
  --rank-memory 9k --report -o two.json 2>&1 >/dev/null | grep 'rank-memory\|kB of \|^rank  '
# A limit that not even one part keeps.
try plan --model graphsage.json --ranks 2 --rank-memory 2k -o none.json
sed 's/"memory_limit": *[0-9]*/"memory_limit":2000/' two.json >changed.json
cp two.part changed.part
try npu-plan --verify changed.json
sed 's/"streamed_bytes": *\([0-9]*\)/"streamed_bytes":\10/' two.json >changed.json
try npu-plan --verify changed.json
# Features that cannot be read row by row.
plan --model graphsage.json --ranks 1 --rank-memory 11k -o little.json
LC_ALL=C sed 's/False/True /' x.npy >columns.npy
try_silent npu-run little.json --features columns.npy
try_silent npu-run little.json --features missing.npy
try_silent npu-run little.json --features graph.mtx
