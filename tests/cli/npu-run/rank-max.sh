# SPDX-License-Identifier: Apache-2.0
# GraphSAGE that takes the largest of its neighbours: rows cross as features or as the largest of several, the fewest of them,
# and any number of ranks gives the bits of one process without ranks.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
plan() { npu-plan -q graph.mtx --model largest.json --profile profile.json --partitioner metis --devices cpu --select greedy -k 8 "$@"; }
# Some versions of libtorch warn of the operator on stderr.
complain() {
  echo "exit $?"
  grep '^npu-run' err
}
run() { npu-run -q "$1" --features x.npy --threads 1 --device=cpu=aten --outputs "$2" >report.json 2>err || complain; }
plan -o whole.json
run whole.json whole.npy
plan --ranks 1 -o one.json
run one.json one.npy
cmp whole.npy one.npy && echo "the bits of a plan without ranks"
plan --ranks 4 -o four.json
npu-plan --verify four.json | grep -c '"ok": true'
sed -n '/^  "ranks": {/,$s/^    "\(exchange\|rows\|halo\)": /\1 /p' four.json
plan --ranks 1 --rank-memory 15k -o little.json
run little.json little.npy
cmp whole.npy little.npy && echo "the same bits part by part"
# Whatever kernels the BLAS has: those of Prescott add up a row in another order where there are other rows.
for core in Prescott Nehalem; do
  export OPENBLAS_CORETYPE=$core
  run little.json other.npy
  cmp whole.npy other.npy && echo "the same bits with the kernels for $core"
done
unset OPENBLAS_CORETYPE
# A model that adds rows up in one layer and takes the largest in another.
awk '/"layer": 1,/ { if (!done) while ((getline line <"largest.json") > 0) if (line ~ /"layer": 1,/) print line; done = 1; next } { print }' \
  graphsage.json >mixed.json
npu-plan graph.mtx --model mixed.json --profile profile.json --partitioner metis --devices cpu --select greedy -k 8 --ranks 2 -o mixed.plan.json 2>&1 |
  grep 'only features'
need_mpi
for exchange in cover features; do
  plan --ranks 4 --exchange $exchange -o four.json
  together 4 npu-run -q four.json --features x.npy --threads 1 --device=cpu=aten --outputs four.npy >report.json 2>err || complain
  cmp whole.npy four.npy && echo "$exchange: the same bits on four ranks"
  tr -d ' \n' <report.json | grep -o '"rows":[0-9]*,"planned_rows":[0-9]*,"bytes":[0-9]*'
done
