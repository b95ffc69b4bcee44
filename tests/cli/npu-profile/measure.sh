# SPDX-License-Identifier: Apache-2.0
# 28 blocks of the seven stages for the cpu and 9 for the npu, at each point; a second run reuses them. One size: where there is a smaller one,
# blocks that were slow there are left out.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/graphsage.* .
npu-profile graphsage.json --nodes 40 --degrees 2 --runs 1 --devices cpu,npu -o table.json 2>said
echo "exit $?"
# Whatever else the machine does.
grep -v 'stay disturbed by other work' said
sed -i 's/,"disturbed": *true//' table.json
grep -c '"device":"cpu","layer":1,.*"n":40,' table.json
grep -c '"device":"npu","layer":2,.*"n":40,' table.json
try npu-profile graphsage.json --nodes 40 --degrees 2 --runs 1 --devices cpu,npu -o table.json | grep -v 'stay disturbed by other work'
# One run says nothing of the spread; halo nodes count where edges read them.
grep '"runs":1}' table.json | grep -c '"mad_ms"'
grep '"device":"cpu","layer":1,"first":1,"last":7,' table.json | grep -c '"halo_ms"'
grep '"device":"cpu","layer":1,"first":7,"last":7,' table.json | grep -c '"halo_ms"'
grep -o '"from": *"[a-z]*","to": *"[a-z]*"' table.json
grep -o '"backend": *"[a-z]*"' table.json
grep -c '"memory_bytes": *[1-9]' table.json
sed 's/"cores": *[0-9]*/"cores":77/' table.json >other.json
try npu-profile graphsage.json --nodes 20 --degrees 2 --runs 1 --devices cpu,npu -o other.json
