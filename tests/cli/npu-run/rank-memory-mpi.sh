# SPDX-License-Identifier: Apache-2.0
# Two ranks that keep rows in files: the same bits as with all in memory, and one of them says what is wrong.
. "$CASES/lib.sh"
need_mpi
cp "$TESTDATA"/gnn/* .
plan() { npu-plan -q graph.mtx --profile profile.json --partitioner metis --devices cpu,npu --select greedy --pad 16 -k 8 "$@"; }
# What each rank has read: blocks, bytes, and how often a row was read in a layer.
reads() { tr -d ' \n' <report.json | grep -o '"planned_bytes":[0-9]*\|"blocks_read":[0-9]*,"bytes_read":[0-9]*,"reads_of_row":[0-9.]*'; }
for exchange in cover features; do
  plan --model graphsage.json --ranks 2 --exchange $exchange -o in_memory.json
  # By features alone one rank has what it takes.
  limit=9k
  [ $exchange = features ] && limit=7100
  plan --model graphsage.json --ranks 2 --exchange $exchange --rank-memory $limit -o two.json
  for name in in_memory two; do
    mpirun --oversubscribe --bind-to none -n 2 npu-run $name.json --features x.npy --threads 1 --outputs $name.npy >report.json 2>err || cat err
  done
  cmp in_memory.npy two.npy && echo "$exchange on two ranks: the same bits"
  reads
done
mpirun --oversubscribe --bind-to none -n 2 npu-run two.json --features missing.npy >report.json 2>err
echo "exit $?"
grep '^npu-run' err
