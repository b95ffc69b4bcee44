# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
try npu-plan graph.mtx
try npu-plan --profile profile.json
try npu-plan graph.mtx --subgraphs subgraphs.json --profile profile.json
try npu-plan graph.mtx --profile profile.json
for option in '-k 0' '-k 4..2' '-k x' '--pad 0' '--ratios 1.5' '--select best' '--interpolation cubic' \
  '--node-imbalance 1' '--segments 0' '--seed -1' '--exclude npu' '--exclude tpu=1' '--exclude npu=9' \
  '--memory cpu=lots' '--resource cpu=' '--devices tpu' '--gantt -'; do
  # shellcheck disable=SC2086
  try npu-plan graph.mtx --model graphsage.json --profile profile.json $option
done
