# SPDX-License-Identifier: Apache-2.0
# A plan that was changed anywhere does not pass --verify.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
npu-plan graph.mtx --model graphsage.json --profile profile.json -k 2 --pad 16 -o plan.json 2>/dev/null
change() {
  sed "$1" plan.json >changed.json
  cmp -s plan.json changed.json && echo "NOTHING CHANGED"
  npu-plan --verify changed.json >out 2>err
  echo "exit $?: $1"
  sed -n 1p err | cut -c 1-100
  [ -s out ] && echo "WROTE OUTPUT"
}
cp plan.part changed.part
change 's/"makespan_ms": /"makespan_ms": 1/'
change 's/"max_load_ms": /"max_load_ms": 1/'
change 's/"lower_bound_ms": 6.4/"lower_bound_ms": 6.6/'
change 's/"pad": 16/"pad": 32/'
change 's/"hash": "/"hash": "0/'
change 's/"halo":[0-9]*,"n_pad"/"halo":7,"n_pad"/'
change 's/"latency_ms":/"latency_ms":1/'
change 's/"first":1/"first":2/'
change 's/"kind": "plan"/"kind": "plane"/'
change '/"sweep"/,$d'
