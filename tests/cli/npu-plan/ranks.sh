# SPDX-License-Identifier: Apache-2.0
# Plans for several processes: the same parts for any number of them, the fewest rows, and a check that finds changes.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
for ranks in 1 2 4 8; do
  npu-plan -q graph.mtx --model graphsage.json --profile profile.json --partitioner metis -k 8 --pad 16 --ranks $ranks -o plan$ranks.json
  cmp plan1.part plan$ranks.part
  npu-plan --verify plan$ranks.json | grep '"ok"'
  sed -n '/^  "ranks": {/,$s/^    "\(count\|exchange\|rows\|halo\|bytes\)": /\1 /p' plan$ranks.json | tr '\n' ' '
  echo
done
npu-plan -q graph.mtx --model graphsage.json --profile profile.json --partitioner metis -k 8 --pad 16 --ranks 4 --report -o again.json \
  2>&1 >/dev/null | sed -n '/^rank /,/in all layers/p'
sed 's/again.part/plan4.part/' again.json | cmp - plan4.json
npu-plan -q graph.mtx --model graphsage.json --profile profile.json --partitioner metis -k 8 --pad 16 --ranks 4 --exchange features -o features.json \
  --assert 'exchange_rows==85' --assert 'halo_rows==85' --assert 'ranks==4' --assert 'exchange_bytes==4760'
echo "exit $?"
grep -c '"cover"' features.json
try_silent npu-plan --verify features.json
# The time of exchanges by a link.
npu-plan -q graph.mtx --model graphsage.json --profile profile.json --partitioner metis -k 8 --pad 16 --ranks 4 --rank-bandwidth 1M --rank-latency 50 \
  --report -o link.json 2>&1 >/dev/null | grep '^predicted for'
try_silent npu-plan --verify link.json
sed 's/"link_latency_us": *50[.0]*/"link_latency_us":51/' link.json >changed.json
cp link.part changed.part
try npu-plan --verify changed.json
sed 's/"link_bytes_per_second": *1[0-9]*/"link_bytes_per_second":0/' link.json >changed.json
try npu-plan --verify changed.json
try npu-plan graph.mtx --model graphsage.json --profile profile.json --ranks 2 --rank-latency 5
try npu-plan graph.mtx --model graphsage.json --profile profile.json --ranks 2 --rank-bandwidth fast
try npu-plan graph.mtx --model graphsage.json --profile profile.json --ranks 2 --rank-bandwidth 0
# A model with more than sums over edges.
npu-plan graph.mtx --model gat.json --profile profile.json --partitioner metis -k 8 --pad 16 --ranks 4 -o gat.plan.json 2>&1 | grep 'only features'
try_silent npu-plan --verify gat.plan.json
# What --verify finds: a row that is left out, one that is no edge, more rows than there have to be, another memory,
# times of more layers than there are, other sums.
change() {
  sed "$1" plan4.json >changed.json
  cmp -s plan4.json changed.json && echo "nothing changed: $1"
  try npu-plan --verify changed.json
}
change 's/"cover": *"\([0-9]*\)>/"cover":"\1+/'
change 's/"cover": *"[0-9]*>/"cover":"59>/'
change 's/"rows": *\([0-9]*\), *"cover": *"\([^ ]*\) /"rows":\1,"cover":"\2 \2 /'
change 's/"memory_bytes": *\([0-9]*\)/"memory_bytes":\10/'
change 's/"compute_ms": *\[/"compute_ms":[1,/'
change '/^  "ranks": {/,$s/"makespan_ms": *[0-9.]*/"makespan_ms":1/'
change '/^  "ranks": {/,$s/"halo": *[0-9]*/"halo":1/'
change 's/"parts": *\[\([0-9]*\),\([0-9]*\)\]/"parts":[\1]/'
try npu-plan graph.mtx --model graphsage.json --profile profile.json -k 4,8 --ranks 9
try npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers --ranks 2
try npu-plan graph.mtx --profile profile.json --no-transfers --ranks 2
try npu-plan graph.mtx --model graphsage.json --profile profile.json --ranks 2 --exchange both
try npu-plan graph.mtx --model graphsage.json --profile profile.json --ranks 0
