# SPDX-License-Identifier: Apache-2.0
# One part and eight, whose sums run over the same edges in the same order: the same bits, since a row's product does not
# depend on how many rows there are; where a part computes a linear layer before its sums and another does not, the report
# tells, and results are as close as rounding lets them.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
# 2000 nodes with 16000 edges, and the six features of the nodes of testdata again and again.
awk 'function draw(n) { x = (x * 1103515245 + 12345) % 2147483648; return int(x / 65536) % n }
BEGIN {
  x = 7
  print "%%MatrixMarket matrix coordinate pattern general"
  print "2000 2000 16000"
  for (e = 0; e < 16000; ++e) { r = draw(3); print (r == 0 ? draw(40) : draw(2000)) + 1, (r == 1 ? draw(50) : draw(2000)) + 1 }
}' >graph.mtx
tail -c +129 x.npy >rows
{
  printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (2000, 6), }"
  for _ in $(seq 34); do cat rows; done | head -c 48000
} >features.npy
plan() { npu-plan -q graph.mtx --profile profile.json --partitioner metis --devices cpu --select greedy "$@"; }
run() { npu-run -q "$1" --features features.npy --threads "$2" --device=cpu=aten --outputs "$3" >report.json 2>err || cat err; }
for model in gat largest narrow_first; do
  plan --model $model.json -k 1 -o one.json
  run one.json 1 one.npy
  plan --model $model.json -k 8 --ranks 1 --exchange features -o eight.json
  run eight.json 2 eight.npy
  echo "$model: $(number products_first <report.json) linear layers before their sums"
  cmp one.npy eight.npy && echo "the same bits"
done
