# SPDX-License-Identifier: Apache-2.0
# A graph, a model and a table: plan, partition file, drawing and trace; every plan holds.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
for model in graphsage gat; do
  try npu-plan graph.mtx --model $model.json --profile profile.json -k 2,4 --pad 16 -o $model.plan.json \
    --gantt $model.svg --trace $model.trace
  try_silent npu-plan --verify $model.plan.json
  wc -l <$model.plan.part
  grep -c '<rect' $model.svg
  grep -c '"ph":"X"' $model.trace
done
try_silent npu-plan graph.mtx --model gcn.json --profile profile.json -k 3 --pad auto
try_silent npu-plan graph.mtx --model gcn.json --profile profile.json -k 3 --memory cpu=3000 --memory gpu=3000
try_silent npu-plan graph.mtx --model gcn.json --profile profile.json -k 1000
try npu-run graphsage.plan.json --simulate
