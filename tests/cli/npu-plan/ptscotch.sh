# SPDX-License-Identifier: Apache-2.0
# Processes of one launcher read shares of a graph and cut it together by PT-Scotch: the same bytes each time, parts as
# balanced and nearly as well cut as METIS's, and a plan that runs on its ranks. The graph is one of make_graph.py.
. "$CASES/lib.sh"
need_mpi
if [ ! -e "$transports/npu_partitioner_ptscotch.so" ]; then
  echo "skipped: PT-Scotch is not built in (Debian package libptscotch-dev)"
  exit 77
fi
cp "$TESTDATA"/gnn/* .
input="--model graphsage.json --profile profile.json --devices cpu,npu --select greedy --pad 16"
# shellcheck disable=SC2086 # $input
cut() {
  count=$1
  shift
  together "$count" npu-plan -q "$@" $input 2>err || grep '^npu-plan' err
}
partition() { tr -d ' \n' <"$1" | sed 's/.*"partition":{//; s/}.*//'; }
of_plan() { partition "$1" | sed "s/.*\"$2\"://; s/,\"[a-z].*//"; }

# The same bytes, beside a cut by METIS: at most 1.2 times its edges, and parts within the same limits.
for k in 4 8; do
  # shellcheck disable=SC2086 # $input
  npu-plan -q rmat.csr $input -k $k --ranks 4 --partitioner metis -o metis.json
  for count in 1 2 4; do
    cut $count rmat.csr -k $k --ranks 4 --partitioner ptscotch --partition-file plan.part -o plan.json
    cp plan.part first.part
    cp plan.json first.json
    cut $count rmat.csr -k $k --ranks 4 --partitioner ptscotch --partition-file plan.part -o plan.json
    cmp first.json plan.json && cmp first.part plan.part && echo "$k parts by $count: the same bytes twice"
    partition plan.json | grep -o '"partitioner".*'
    echo "$(of_plan plan.json edge_cut) $(of_plan metis.json edge_cut) $(of_plan plan.json imbalance)" | tr -d '[]' | tr ',' ' ' |
      awk '{ if ($1 > 1.2 * $2) print "cut", $1, "edges, METIS", $2
             if ($3 > 1.0501 || $4 > 1.0301) print "not balanced:", $3, $4 }'
    npu-plan --verify plan.json | grep '"ok"'
  done
done
# All seeds, and what the first process says.
cut 2 rmat.csr -k 4,8 --ranks 4 --seeds 2 -o seeds.json
npu-plan --verify seeds.json | grep '"ok"'
# shellcheck disable=SC2086 # $input
together 2 npu-plan rmat.csr $input -k 4 --report -o report.json 2>&1 | grep '^parts by\|PT-Scotch'
cut 2 rmat.csr -k 4 --undirected -o undirected.json
npu-plan --verify undirected.json | grep '"ok"'
# More processes than a small graph has use for, one alone, and a graph that nobody has to cut.
npu-plan -q graph.mtx --csr small.csr --model graphsage.json --profile profile.json -k 4 --pad 16 -o small.json
for count in 1 8; do
  cut $count small.csr -k 1,6,60 --ranks 1 --partitioner ptscotch -o small.json
  npu-plan --verify small.json | grep '"ok"'
done
# shellcheck disable=SC2086 # $input
npu-plan -q rmat.csr $input -k 8 --ranks 4 --partitioner ptscotch -o alone.json && partition alone.json | grep -o '"partitioner".*'

# On four ranks the bits of a single one: 2000 rows of six features.
{
  printf '\223NUMPY\001\000\166\000'
  printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (2000, 6), }"
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34; do
    tail -c 1440 x.npy
  done | head -c 48000
} >rows.npy
cut 4 rmat.csr -k 8 --ranks 1 -o one.json
cut 4 rmat.csr -k 8 --ranks 4 -o four.json
cmp one.part four.part
npu-run one.json --features rows.npy --threads 1 --outputs one.npy --device=cpu=onednn >report.json 2>err || cat err
together 4 npu-run four.json --features rows.npy --threads 1 --outputs four.npy --device=cpu=onednn >report.json 2>err || cat err
cmp one.npy four.npy && echo "on four ranks: the same bits"

# Refusals: one process speaks.
refused() {
  echo "\$ npu-plan $*"
  # shellcheck disable=SC2086 # $input
  together 3 npu-plan "$@" $input -o refused.json >out 2>err
  echo "exit $?"
  grep '^npu-plan' err
  cat out
}
head -c 30000 rmat.csr >short.csr
{ head -c 40064 rmat.csr; printf '\377\377\377\177'; tail -c +40069 rmat.csr; } >source.csr
for words in graph.mtx missing.csr short.csr source.csr 'rmat.csr --minimize-halo'; do
  # shellcheck disable=SC2086 # words
  refused $words --partitioner ptscotch
done
refused rmat.csr -k 4 --ranks 8
refused rmat.csr --devices gpu,tpu
refused graph.mtx -k 4
ls refused.json
# Every process in a folder of its own: one does not see the graph, or sees another one of that name.
mkdir at-0 at-1 at-2
ln -s ../graphsage.json ../profile.json at-0
cp rmat.csr at-0
cp rmat.csr at-2
elsewhere() {
  # shellcheck disable=SC2016 # in the processes
  together 3 sh -c 'cd "at-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$@"' - npu-plan rmat.csr $input -k 4 --ranks 4 "$@" -o plan.json >out 2>err
  echo "exit $?"
  grep '^npu-plan' err | grep -v uncertain
  cat out
}
elsewhere
npu-plan --verify at-0/plan.json | grep '"ok"'
elsewhere --partitioner ptscotch
cp small.csr at-1/rmat.csr
elsewhere
mv at-0/rmat.csr at-1
elsewhere
# Named or not, without the shared object.
mkdir -p bare/bin bare/lib/npu/transports
cp "$(command -v npu-plan)" bare/bin
cp "$transports/npu_transport_mpi.so" bare/lib/npu/transports
for method in ptscotch auto; do
  # shellcheck disable=SC2086 # $input
  together 2 bare/bin/npu-plan rmat.csr $input -k 4 --partitioner $method -o bare.json 2>&1 |
    grep '^npu-plan' | sed 's| in /[^ ]*transports| in FOLDER|'
done
