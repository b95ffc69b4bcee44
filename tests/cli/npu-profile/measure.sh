# SPDX-License-Identifier: Apache-2.0
# 28 blocks of the seven stages for the cpu and 9 for the npu, at each point; a second run reuses them.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/graphsage.* .
npu-profile graphsage.json --nodes 20,40 --degrees 2 --runs 1 --devices cpu,npu -o table.json
echo "exit $?"
grep -c '"device":"cpu","layer":1,.*"n":20,' table.json
grep -c '"device":"npu","layer":2,.*"n":40,' table.json
try npu-profile graphsage.json --nodes 20,40 --degrees 2 --runs 1 --devices cpu,npu -o table.json
sed 's/"cores": *[0-9]*/"cores":77/' table.json >other.json
try npu-profile graphsage.json --nodes 20 --degrees 2 --runs 1 --devices cpu,npu -o other.json
