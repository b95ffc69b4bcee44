# SPDX-License-Identifier: Apache-2.0
# Sums that cross between devices: the result of one device, and as many rows as planned.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
run() { npu-run -q "$1" --features x.npy --device gpu=aten --expect "$2" --atol 1e-5 --rtol 0 --outputs "$3" 2>err || {
  echo "exit $?"
  grep '^npu-run' err
}; }
plan() { npu-plan -q graph.mtx --profile profile.json -k 8 --pad 16 "$@"; }
for model in graphsage gcn; do
  for devices in cpu,npu cpu,gpu,npu; do
    plan --model $model.json --devices $devices --exchange cover -o plan.json
    run plan.json $model.expected.npy out.npy >report.json
    tr -d ' \n' <report.json | grep -o '"rows":[0-9]*,"planned_rows":[0-9]*,"halo":[0-9]*'
  done
done
# Programs that were compiled before.
npu-compile -q plan.json --device gpu=aten --no-cache -o units
npu-run -q plan.json --features x.npy --device gpu=aten --units units --outputs units.npy >report.json
cmp out.npy units.npy && grep -c '"units"' report.json
# Where the host computes all parts nothing crosses, and bits are as they were.
plan --model graphsage.json --devices cpu --memory cpu=6000 -o one.json
run one.json graphsage.expected.npy one.npy >/dev/null
plan --model graphsage.json --devices cpu --memory cpu=6000 --exchange cover -o cover.json
run cover.json graphsage.expected.npy cover.npy | tr -d " \n" | grep -o '"rows":[0-9]*,"planned_rows":[0-9]*,"halo":[0-9]*'
cmp one.npy cover.npy && echo "the same bits on one device"
# Covers of another graph.
sed 's/"cover": *"[^ ]* /"cover":"59>0 /' plan.json >changed.json
try npu-run -q changed.json --features x.npy
