# SPDX-License-Identifier: Apache-2.0
# An ordinary model: every node on every device that runs it, borders where placements have them, and a plan by the
# table that runs.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/residual.json
npu-tag --print-target --target host | sed 's/"aten.add_.Tensor", *//' >target.json
npu-profile "$model" --target ./target.json --quick --runs 2 --threads 2 --report -o table.json 2>report
echo "exit $?"
sed -n 's/^\(all on [a-z]*\) .*/\1/p' report
grep -o '"kind": *"[a-z-]*"' table.json | tr -d ' '
for key in model_digest fingerprint placements transfers borders; do grep -q "\"$key\"" table.json || echo "no $key"; done
nodes=$(npu-tag --target ./target.json "$model" | tee tagged.json | npu-partition | number nodes_npu)
for device in npu cpu; do
  echo "$device: $(grep -o '"node": *"[^"]*", *"device": *"'$device'"' table.json | sort -u | wc -l | tr -d ' ')"
done
echo "$nodes on the npu"
grep -q '"tensor"' table.json || echo "no tensor crossed"
npu-partition -s mincut --profile table.json tagged.json -o plan.json --assert 'estimated_nodes==0' --assert 'predicted_us>0'
echo "exit $?"
npu-partition --verify --profile table.json plan.json | grep -c 'times: those of the plan'
npu-run plan.json --random-inputs 1 --verify cpu >run.json
echo "exit $?"
awk "BEGIN { p = $(number predicted_us <plan.json) / 1000 - $(grep -o '"predicted_ms": *[0-9.]*' run.json | tail -n 1 | sed 's/.*: *//'); print (p < 0.001 && p > -0.001) ? \"predicted as planned\" : \"predicted otherwise\" }"
npu-tag --print-target --target tpu >tpu.json
try npu-profile "$model" --target ./tpu.json
try npu-profile "$TESTDATA/models/mobilenet_v2.json" --quick
try npu-profile "$TESTDATA/models/small/empty.json"
exit 0
