# SPDX-License-Identifier: Apache-2.0
# Times of a model in both precisions, and what npu-align makes of them.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
model=$small/residual.json
npu-profile "$model" --calibrate "$small/residual.inputs.safetensors" -o ranges.json
npu-profile "$model" --ranges ranges.json --quick --threads 1 --report -o table.json 2>report
echo "exit $?"
grep -o '^int8 on npu: [0-9]* nodes\|^[a-z0-9]* -> [a-z0-9]* on [a-z]*' report
npu-align --quantize mixed --ranges ranges.json --profile table.json --max-error 1 "$model" -o mixed.json
npu-align --verify mixed.json | sed 's/[0-9][0-9]*/N/g'
try npu-profile "$model" --ranges missing.json
try npu-profile "$model" --ranges ranges.json --calibrate "$small/residual.inputs.safetensors"
try npu-profile "$small/mlp.json" --ranges ranges.json
try npu-profile --machine --ranges ranges.json
exit 0
