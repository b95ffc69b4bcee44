# SPDX-License-Identifier: Apache-2.0
# The sizes of a table come from a graph and its parts; errors that no point can tell are unknown. Links lead from
# every device to every other one.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
npu-profile gcn.json --graph graph.mtx -k 2,4 --quick --runs 2 --devices cpu,npu,gpu=aten --report -o table.json 2>said
echo "exit $?"
grep -o '"n":[0-9]*' table.json | sort -u
grep 'interpolation' said
grep -o '"from": *"[a-z]*","to": *"[a-z]*"' table.json
sed -i 's/,"disturbed": *true//' table.json
npu-plan graph.mtx --model gcn.json --profile table.json -k 2,4 --pad 16 -o plan.json 2>said
echo "exit $?"
grep -o 'uncertain: how well.*' said
# The plan runs on what was measured, without --device.
npu-run plan.json --features x.npy --expect gcn.expected.npy >run.json
echo "exit $?"
grep -o '"measured_of": *"[a-z ]*"' run.json
try npu-profile gcn.json --graph graph.mtx --nodes 20
try npu-profile gcn.json -k 4
try npu-profile gcn.json --graph missing.mtx
try npu-profile gcn.json --graph graph.mtx -k 0
