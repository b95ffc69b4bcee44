# SPDX-License-Identifier: Apache-2.0
# Whatever a device is called, the drawing of the schedule is XML.
. "$CASES/lib.sh"
gnn=$TESTDATA/gnn
sed 's/"gpu"/"<g\\u001b[31m\&\\u009b\\uffff\\"x"/g' "$gnn/profile.json" >profile.json
npu-plan -q "$gnn/graph.mtx" --model "$gnn/graphsage.json" --profile profile.json -k 2 --gantt plan.svg -o plan.json
echo "exit $?"
grep -o '<text x="8" y="[0-9.]*">[^ ]*</text>' plan.svg
LC_ALL=C tr -d '\n' <plan.svg | LC_ALL=C grep -c "$(printf '[\001-\037\177]\\|\302[\200-\237]')"
:
