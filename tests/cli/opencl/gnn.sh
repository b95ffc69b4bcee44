# SPDX-License-Identifier: Apache-2.0
# Plans of graph neural networks over cpu, gpu and npu: the results are PyTorch's, the second start finds all programs in the
# cache, and links between all devices are measured.
. "$CASES/lib.sh"
need_opencl many
cp "$TESTDATA"/gnn/* .
plan() { npu-plan -q "$@" --target trio --profile profile.json --pad 16 -o plan.json; }
run() {
  npu-run plan.json --target trio --cache-dir cache --rtol 1e-3 --atol 1e-4 "$@" >report.json
  echo "exit $?, $(comparison comparison <report.json)"
}
devices() { tr -d ' \n' <plan.json | grep -o '{"device":"[a-z]*"' | sort -u | sed 's/.*:"//; s/"$//' | tr '\n' ' '; }

for case in 'graphsage 3' 'gcn 2' 'gat 2'; do
  # shellcheck disable=SC2086 # words
  set -- $case
  plan graph.mtx --model "$1.json" -k "$2"
  echo "$1: $(devices)$(run --features x.npy --expect "$1.expected.npy")"
done
compiled=$(number static_compiles <report.json)
run --features x.npy --expect gat.expected.npy
[ "$compiled" -gt 2 ] && [ "$(number cache_hits <report.json)" = "$compiled" ] && echo "again: $(number static_compiles <report.json) compiled"

# A random graph of 200 nodes, beside the cpu with the whole graph.
awk 'BEGIN {
  srand(7)
  print "%%MatrixMarket matrix coordinate pattern general"
  print 200, 200, 1000
  for (n = 0; n < 1000;) {
    at = 1 + int(200 * rand()) " " 1 + int(200 * rand() * rand())
    if (!(at in seen)) { seen[at] = 1; print at; ++n }
  }
}' >random.mtx
awk 'BEGIN {
  srand(8)
  print "%%MatrixMarket matrix array real general"
  print 200, 6
  for (n = 0; n < 1200; ++n) print 2 * rand() - 1
}' >random.x.mtx
npu-plan -q random.mtx --model graphsage.json --profile profile.json --devices cpu -k 1 -o whole.json
npu-run whole.json --features random.x.mtx --outputs whole.npy >report.json
echo "whole: exit $?"
plan random.mtx --model graphsage.json -k 2
echo "random: $(devices)$(run --features random.x.mtx --expect whole.npy)"

npu-profile -q graphsage.json --target trio --nodes 16 --degrees 1 --max-bytes 1 -o table.json
echo "exit $?"
grep -o '"from": *"[a-z]*","to": *"[a-z]*"' table.json
awk '/"from"/ { match($0, /"bytes_per_s": *[0-9]/); if (RSTART == 0) print "no rate:", $0 }' table.json
