# SPDX-License-Identifier: Apache-2.0
# What several processes of one launcher do without PT-Scotch: the first one plans, and one process speaks. The transport
# over MPI is all that this needs.
. "$CASES/lib.sh"
need_mpi
cp "$TESTDATA"/gnn/* .
input="--model graphsage.json --profile profile.json --devices cpu,npu --select greedy --pad 16"
rank='${OMPI_COMM_WORLD_RANK:-$PMI_RANK}'
# The programs beside a folder of transports that the case fills.
mkdir -p bare/bin bare/lib/npu/transports
cp "$(command -v npu-plan)" bare/bin
said() { grep '^npu-plan' | sed 's| in /[^ ]*transports| in FOLDER|; s/env -u [A-Z_]*/env -u VARIABLE/'; }
# Three of them, and how they end; their lines come in any order.
of_three() {
  echo "\$ npu-plan $*"
  # shellcheck disable=SC2086 # $input
  together 3 bare/bin/npu-plan "$@" $input -o plan.json >out 2>err
  echo "exit $?"
  said <err | grep -v uncertain
  cat out
}

# No transport: the first process plans alone, the others say nothing.
# shellcheck disable=SC2086 # $input
npu-plan -q graph.mtx $input -k 4 --partition-file plan.part -o alone.json
for words in 'graph.mtx -k 4 --partition-file plan.part' 'graph.mtx -k 4 --partition-file plan.part --partitioner metis'; do
  rm -f plan.json
  # shellcheck disable=SC2086 # words
  of_three $words
  cmp alone.json plan.json && echo "the plan of a single process"
done
echo "$ npu-plan --subgraphs"
together 3 bare/bin/npu-plan --subgraphs subgraphs.json --profile profile.json --no-transfers -o plan.json 2>&1 | said | grep -v uncertain
# Named, it has to be there: all of them, or the only one, say so.
of_three rmat.csr -k 4 --partitioner ptscotch | sort -u
# shellcheck disable=SC2086 # $input
bare/bin/npu-plan rmat.csr $input -k 4 --partitioner ptscotch 2>&1 | said
# One that does not load.
echo "no shared object" >bare/lib/npu/transports/npu_transport_mpi.so
of_three graph.mtx -k 4 | sed 's/does not load: .*/does not load/'

# With the transport, but without PT-Scotch.
cp "$transports/npu_transport_mpi.so" bare/lib/npu/transports
# shellcheck disable=SC2086 # $input
npu-plan -q rmat.csr $input -k 4 --partition-file plan.part -o alone.json
for method in auto metis multilevel; do
  of_three rmat.csr -k 4 --partition-file plan.part --partitioner $method
  cmp -s alone.json plan.json && echo "the plan of a single process"
  grep -o '"levels"' plan.json
done
of_three rmat.csr -k 4 --partitioner ptscotch
# What nobody cuts.
together 2 npu-plan --subgraphs subgraphs.json --profile profile.json --no-transfers -o plan.json 2>&1 | said | grep -v uncertain
# Processes that were asked for different things, and how each makes a plan of its own.
# shellcheck disable=SC2086 # $input
together 2 sh -c "npu-plan rmat.csr $input -k 4 --seed $rank" 2>&1 | said
# shellcheck disable=SC2086 # $input
together 2 sh -c "env -u OMPI_COMM_WORLD_SIZE -u PMI_SIZE -u SLURM_STEP_NUM_TASKS npu-plan -q rmat.csr $input -k 4 --seed $rank -o own$rank.json"
npu-plan --verify own0.json | grep '"ok"'
npu-plan --verify own1.json | grep '"ok"'
