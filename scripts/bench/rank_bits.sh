#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plans of the same 8 parts for 1, 2, 4 and 8 ranks over random and given graphs: every one has to give the bits of one
# process, for GraphSAGE, GCN and GAT, and every pair of ranks has to send as many rows as planned, which --verify finds to be
# the fewest by an algorithm of its own. Last the rows that cross by 8 parts, and by METIS's parts of seed 0, one for each
# rank; where 8 parts, which any number of ranks can share, need more, it says so and fails.
#
# Usage: scripts/bench/rank_bits.sh [-n RANDOM_GRAPHS] [-s SEED_OF_RMAT] [GRAPH...]
#   -n: 50 by default, of 60 nodes and 400 edges; -s: an R-MAT graph of scripts/make_graph.py besides (32768 nodes, 200000
#   edges; needs numpy, PYTHON names an interpreter). GRAPH: what npu-plan reads.
# Needs mpirun and the transport over MPI.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
PATH=$root/build/bin:$PATH
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
random=50
rmat_seed=
while getopts n:s: option; do
  case $option in
    n) random=$OPTARG ;;
    s) rmat_seed=$OPTARG ;;
    *)
      sed -n '3,13s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
done
shift $((OPTIND - 1))
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
data=$root/testdata/gnn
for model in graphsage gcn gat; do cp "$data/$model.json" "$data/$model.safetensors" "$scratch"; done

random_graph() {
  awk -v seed="$1" 'function draw(n) { x = (x * 1103515245 + 12345) % 2147483648; return int(x / 65536) % n }
  BEGIN {
    x = seed
    print "%%MatrixMarket matrix coordinate pattern general"
    print "60 60 400"
    for (e = 0; e < 400; ++e) { r = draw(3); print (r == 0 ? draw(5) : draw(60)) + 1, (r == 1 ? draw(7) : draw(60)) + 1 }
  }'
}
# The six features of each of so many nodes: those of testdata again and again.
features() {
  tail -c +129 "$data/x.npy" >"$scratch/some"
  while [ "$(stat -c %s "$scratch/some")" -lt $((24 * $1)) ]; do
    cat "$scratch/some" "$scratch/some" >"$scratch/more"
    mv "$scratch/more" "$scratch/some"
  done
  printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($1, 6), }"
  head -c $((24 * $1)) "$scratch/some"
}
plan() {
  npu-plan -q "$graph" --profile "$data/profile.json" --devices cpu,npu --select greedy --pad 64 "$@"
}
number() { grep -o "\"$1\": *[0-9]*" | head -n 1 | sed 's/.*: *//'; }
rows_of() { sed -n '/^  "ranks": {/,$p' "$1" | number rows; }
fail() {
  echo "$name: $*" >&2
  failures=$((failures + 1))
}

check() {
  plan --model "$scratch/gcn.json" -k 8 --ranks 1 -o "$scratch/size.json"
  features "$(number graph_nodes <"$scratch/size.json")" >"$scratch/x.npy"
  for model in graphsage gcn gat; do
    for ranks in 1 2 4 8; do
      plan --model "$scratch/$model.json" -k 8 --ranks $ranks --csr "$scratch/graph.csr" -o "$scratch/$model$ranks.json"
      npu-plan --verify "$scratch/$model$ranks.json" >"$scratch/verified" || fail "$model on $ranks ranks is not what the plan says"
      launch=()
      [ $ranks -eq 1 ] || launch=(mpirun --oversubscribe --bind-to none -n "$ranks")
      "${launch[@]}" npu-run -q "$scratch/$model$ranks.json" --features "$scratch/x.npy" --threads 1 --device=cpu=onednn \
        --outputs "$scratch/$ranks.npy" >"$scratch/report"
      [ $ranks -gt 1 ] || continue
      cmp "$scratch/1.npy" "$scratch/$ranks.npy" || fail "$model on $ranks ranks has other bits"
      tr -d ' \n' <"$scratch/report" | grep -o '"rows":[0-9]*,"planned_rows":[0-9]*}' | awk -F'[:,}]' '
        $2 != $4 { wrong = 1 } END { exit wrong }' || fail "$model on $ranks ranks sends other rows than planned"
    done
  done
  [ "$1" = table ] || return 0
  for ranks in 2 4 8; do
    plan --model "$scratch/graphsage.json" -k $ranks --ranks $ranks --partitioner metis --seed 0 -o "$scratch/metis.json"
    ours=$(rows_of "$scratch/graphsage$ranks.json")
    theirs=$(rows_of "$scratch/metis.json")
    halo=$(sed -n '/^  "ranks": {/,$p' "$scratch/graphsage$ranks.json" | number halo)
    printf '%-14s %6d %10d %10d %10d\n' "$name" $ranks "$halo" "$ours" "$theirs"
    [ "$ours" -le "$theirs" ] || more="$more $name/$ranks"
  done
}

more=
for ((i = 1; i <= random; ++i)); do
  name=random$i
  graph=$scratch/graph.mtx
  random_graph $i >"$graph"
  check silently
done
echo "$random random graphs, three models, 1, 2, 4 and 8 ranks: $failures failures"
[ $# -gt 0 ] || [ -n "$rmat_seed" ] || exit $((failures > 0))
printf '%-14s %6s %10s %10s %10s\n' graph ranks halo rows "seed 0"
for graph in "$@"; do
  name=$(basename "$graph")
  check table
done
if [ -n "$rmat_seed" ]; then
  name=rmat/$rmat_seed
  graph=$scratch/rmat.mtx
  "${PYTHON:-python3}" "$root/scripts/make_graph.py" --nodes 32768 --edges 200000 --seed "$rmat_seed" -o "$graph" >&2
  check table
fi
echo "$failures failures; more rows than by METIS's parts of seed 0:${more:- nowhere}"
[ -z "$more" ] || exit 1
exit $((failures > 0))
