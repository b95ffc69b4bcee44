# SPDX-License-Identifier: Apache-2.0
# -q hides warnings, never errors.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/empty.json
inputs=$TESTDATA/models/small/bert_tiny.inputs.safetensors
try_silent npu-run "$model" --random-inputs 0 --inputs "$inputs"
try_silent npu-run "$model" --random-inputs 0 --inputs "$inputs" -q
try_silent npu-run "$model" --inputs "$inputs" --quiet
