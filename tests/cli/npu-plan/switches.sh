# SPDX-License-Identifier: Apache-2.0
# What switching between programs takes is planned with: from the table, by device or for all, or the target.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
plan() { npu-plan -q graph.mtx --model graphsage.json --profile table.json -k 8 --pad 16 -o plan.json "$@"; }
numbers() {
  for name in makespan_ms lower_bound_ms plan_switches switching_ms ungrouped_ms; do
    printf '%s %s; ' $name "$(number $name <plan.json)"
  done
  echo
  npu-plan --verify plan.json | grep '"ok"'
}
echo "without:"
cp profile.json table.json
plan && numbers
for ms in 0.01 0.1 1; do
  echo "$ms ms on the npu:"
  sed 's/"static": true/"static": true, "switch_ms": '$ms/ profile.json >table.json
  plan --report 2>&1 | grep 'grouping saves'
  numbers
done
echo "0.1 ms on every device but the npu:"
sed 's/"static": true/"static": true, "switch_ms": 0/; s/"devices":/"switch_ms": 0.1, "devices":/' profile.json >table.json
plan --report 2>&1 | grep 'grouping saves'
numbers
echo "programs that cannot be shared, 3 switches in each of the 2 layers: the bound counts them"
sed 's/"static": true/"static": true, "switch_ms": 20/' profile.json >table.json
echo '[{"id": 0, "n": 20, "m": 60}, {"id": 1, "n": 40, "m": 100}, {"id": 2, "n": 60, "m": 200}, {"id": 3, "n": 80, "m": 300}]' >parts.json
npu-plan -q --subgraphs parts.json --model graphsage.json --profile table.json --pad 1 --devices cpu,npu \
  --exclude cpu=5,6,7 --exclude npu=1,2,3,4 -o plan.json
numbers
echo "a default of the target:"
cp profile.json table.json
npu-tag --print-target host | sed 's/"name": *"npu",/"name": "npu", "switch_us": 100,/' >target.json
plan --target target.json --report 2>&1 | grep 'grouping saves'

echo "a plan that says something else:"
sed 's/"static": true/"static": true, "switch_ms": 0.1/' profile.json >table.json
plan
change() {
  sed "$1" plan.json >changed.json
  cmp -s plan.json changed.json && echo "NOTHING CHANGED"
  npu-plan --verify changed.json 2>&1 >/dev/null | sed 's/recomputed as [0-9.]*, the plan says [0-9.]*/recomputed/'
}
cp plan.part changed.part
change 's/"switch_ms": *0.1/"switch_ms": 0.2/'
change 's/"switching_ms": /"switching_ms": 1/'
change 's/"ungrouped_ms": /"ungrouped_ms": 1/'
change 's/"plan_switches": /"plan_switches": 1/'
change 's/"lower_bound_ms": \([0-9.]*\),$/"lower_bound_ms": 9\1,/'
sed 's/"static": true/"static": true, "switch_ms": -1/' profile.json >table.json
try plan
exit 0
