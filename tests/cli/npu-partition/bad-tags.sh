# SPDX-License-Identifier: Apache-2.0
# Documents that npu-tag has not tagged, or that were changed afterwards.
. "$CASES/lib.sh"
model=$CASES/npu-partition/seven_nodes.json
npu-tag "$model" --force cpu=concat >tagged.json
try npu-partition "$model"
echo "a target but no device:"
sed '/"name": "concat", "op/s/, "device": "cpu", "device_reason": "forced"//' tagged.json | try npu-partition
sed '/"name": "concat", "op/s/, "device": "cpu", "device_reason": "forced"//' tagged.json | try npu-partition -s contiguous
echo "a device that the target does not have:"
sed '/"name": "concat", "op/s/"device": "cpu"/"device": "gpu"/' tagged.json | try npu-partition
echo "devices but no target:"
try npu-partition "$TESTDATA/bad/partition/target-without-devices.json"
sed 's/"npu": {.*/"npu": {"version": 1}/' "$CASES/npu-run/three_steps.json" | try npu-partition
