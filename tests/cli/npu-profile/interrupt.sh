# SPDX-License-Identifier: Apache-2.0
# Ctrl-C: the table so far is kept, and the next run measures only what is missing.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/graphsage.* .
points() { grep -o '"device":"[a-z]*","layer":[0-9]*,.*"m":[0-9.]*' "$1" | sed 's/"ms":.*//' | sort; }
interrupt npu-profile graphsage.json --nodes 20,40 --degrees 2 --runs 2000 --devices cpu,npu -o table.json
points table.json >before
# On a slow machine that was too early for a point.
for seconds in 4 10 30; do
  [ -s before ] && break
  timeout -s INT $seconds npu-profile graphsage.json --nodes 20,40 --degrees 2 --runs 2000 --devices cpu,npu -o table.json 2>/dev/null
  points table.json >before
done
[ -s before ] && echo "has points"
npu-profile graphsage.json --nodes 20,40 --degrees 2 --runs 1 --devices cpu,npu -o table.json 2>/dev/null
echo "exit $?"
npu-profile graphsage.json --nodes 20,40 --degrees 2 --runs 1 --devices cpu,npu -o whole.json 2>/dev/null
points table.json >after
points whole.json >whole
comm -23 before after
# Which points of the larger size are worth a measurement follows from times.
grep '"n":20,' after >after.small
grep '"n":20,' whole >whole.small
comm -3 after.small whole.small
