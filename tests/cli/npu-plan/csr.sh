# SPDX-License-Identifier: Apache-2.0
# The binary form of a graph: the plan names it, it gives the same parts, and damaged ones are refused.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
plan() { npu-plan -q "$@" --model graphsage.json --profile profile.json --partitioner metis -k 4 --pad 16 --ranks 2; }
plan graph.mtx -o text.json
plan graph.mtx --csr graph.csr -o binary.json
cmp text.part binary.part
grep '"graph"' binary.json
wc -c <graph.csr
try_silent npu-plan --verify binary.json
# From the binary form: the same bytes again.
plan graph.csr --csr again.csr -o again.json
cmp graph.csr again.csr
sed 's/again.csr/graph.csr/; s/again.part/binary.part/' again.json | cmp - binary.json
# It may have any name: what it begins with says what it is.
plan graph.mtx --csr graph.safetensors -o named.json
cmp graph.csr graph.safetensors
try_silent npu-plan --verify named.json
# Ids and added edges are part of it.
printf '10 20\n20 30\n30 10\n40 10\n' >edges.txt
npu-plan -q edges.txt --undirected --csr edges.csr --model graphsage.json --profile profile.json --partitioner metis -k 2 --pad 16 -o edges.json
grep -c 'graph_undirected' edges.json
try_silent npu-plan --verify edges.json
# Damaged: a source that is no node, cut short, other versions.
head -c 100 graph.csr >short.csr
{ head -c 8 graph.csr; printf '\002'; tail -c +10 graph.csr; } >version.csr
{ head -c 24 graph.csr; printf '\377\377\377\377\377\377\377\177'; tail -c +33 graph.csr; } >edges_lie.csr
{ head -c 556 graph.csr; printf '\377\377\377\177'; tail -c +561 graph.csr; } >source.csr
for file in short version edges_lie source; do
  try npu-plan $file.csr --model graphsage.json --profile profile.json -k 2 -o out.json
done
try npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers --csr out.csr
try npu-plan graph.mtx --model graphsage.json --profile profile.json -k 2 --csr -
try npu-plan -q graph.mtx --model graphsage.json --profile profile.json -k 4 --pad 16 --ranks 2 --rank-memory 2k -o out.json
npu-plan -q graph.mtx --model graphsage.json --profile profile.json --partitioner metis -k 4 --pad 16 --ranks 4 --rank-memory 8k -o fits.json
echo "exit $?"
try npu-plan -q graph.mtx --model graphsage.json --profile profile.json -k 4 --rank-memory 5k
ls out.* 2>/dev/null || echo 'nothing is written'
