# SPDX-License-Identifier: Apache-2.0
# A plan is checked before anything is read or made for it.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
npu-plan graph.mtx --model graphsage.json --profile profile.json -k 2 --pad 16 -o plan.json 2>/dev/null
try npu-run plan.json
try npu-run plan.json --features x.npy --memory-limit 1G
try npu-run plan.json --simulate --deadline 60
change() {
  sed "$1" plan.json >changed.json
  cmp -s plan.json changed.json && echo "NOTHING CHANGED"
  timeout 20 npu-run changed.json --features x.npy --device gpu=aten --outputs out.npy >out 2>err
  echo "exit $?: $1"
  cat err
  [ -s out ] && echo "WROTE OUTPUT"
  [ -e out.npy ] && echo "WROTE RESULTS"
}
cp plan.part changed.part
change 's/"pad": 16/"pad": 4294968296/'
change 's/"pad": 16/"pad": 100000000/'
change 's/"pad": 16/"pad": 32/'
change 's/"n_pad":[0-9]*/"n_pad":1048576/'
change '/"makespan_ms": /d'
change 's/"pep":0/"pep":77/'
change 's/"k": 2/"k": 3/'
change 's/"kind": "plan"/"kind": "staged"/'
exit 0
