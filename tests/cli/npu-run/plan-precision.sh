# SPDX-License-Identifier: Apache-2.0
# A plan runs in the precision of its table, or in the one that is asked for.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
run() {
  echo "\$ $*"
  npu-run plan.json --features x.npy --device gpu=aten --expect gcn.expected.npy "$@" >report.json
  echo "exit $?: $(grep '"precision"' report.json)"
}
npu-plan graph.mtx --model gcn.json --profile profile.json -k 1 --pad 16 -o plan.json 2>/dev/null
run
run --precision bf16
run --precision bf16 --rtol 1e-6 --atol 1e-6
sed 's/"kind": "profile"}/&, "precision": "bf16"/' profile.json >narrow.json
npu-plan graph.mtx --model gcn.json --profile narrow.json -k 1 --pad 16 -o plan.json 2>/dev/null
npu-plan --verify plan.json >/dev/null
grep '"precision"' plan.json
run
run --precision f32
sed 's/"precision": "bf16"/"precision": "bf8"/' plan.json >bad.json
try npu-run bad.json --features x.npy
sed 's/"precision": "bf16"/"precision": "bf8"/' narrow.json >bad.table.json
try npu-plan graph.mtx --model gcn.json --profile bad.table.json -k 1
