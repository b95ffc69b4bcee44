# SPDX-License-Identifier: Apache-2.0
# Random graphs on four ranks: the bits of one process, and the fewest rows. scripts/bench/rank_bits.sh does it at length.
. "$CASES/lib.sh"
need_mpi
cp "$TESTDATA"/gnn/* .
random_graph() {
  awk -v seed="$1" 'function draw(n) { x = (x * 1103515245 + 12345) % 2147483648; return int(x / 65536) % n }
  BEGIN {
    x = seed
    print "%%MatrixMarket matrix coordinate pattern general"
    print "60 60 400"
    # A third of the edges come from few nodes, and a third lead to few.
    for (e = 0; e < 400; ++e) { r = draw(3); print (r == 0 ? draw(5) : draw(60)) + 1, (r == 1 ? draw(7) : draw(60)) + 1 }
  }'
}
plan() { npu-plan -q graph.mtx --profile profile.json --devices cpu,npu --select greedy --pad 16 -k 8 "$@"; }
for model in graphsage:1 gcn:2 gat:3; do
  random_graph ${model#*:} >graph.mtx
  model=${model%:*}
  plan --model $model.json --ranks 1 -o one.json
  plan --model $model.json --ranks 4 -o four.json
  npu-plan --verify four.json | grep -c '"ok": true'
  npu-run one.json --features x.npy --threads 1 --outputs one.npy --device=cpu=onednn >one.report 2>err || cat err
  together 4 npu-run four.json --features x.npy --threads 1 --outputs four.npy --device=cpu=onednn >report.json 2>err || cat err
  cmp one.npy four.npy && echo "$model: the same bits"
  tr -d ' \n' <report.json | grep -o '"rows":[0-9]*,"planned_rows":[0-9]*}' | awk -F'[:,}]' '
    $2 != $4 { print } { ++pairs } END { print pairs " pairs" }'
done
# A rank with other options, or with another plan under the same name, ends all of them.
run_two() {
  timeout 300 mpirun --oversubscribe --bind-to none -n 1 npu-run "$1" --features x.npy --threads "$2" --outputs two.npy --device=cpu=onednn : \
    -n 1 npu-run "$3" --features x.npy --threads "$4" --outputs two.npy --device=cpu=onednn >report.json 2>err
  echo "exit $?"
  grep '^npu-run' err
}
plan --model graphsage.json --ranks 2 -o two.json
plan --model graphsage.json --ranks 2 --exchange features -o features.json
run_two two.json 1 two.json 2
run_two two.json 1 features.json 1
[ ! -e two.npy ]
