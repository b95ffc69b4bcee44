# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
model=$TESTDATA/models/small/empty.json
try npu-run "$model" --random-inputs 0 --expect missing.safetensors
try npu-run "$model" --random-inputs 0 --expect .
try npu-run "$model" --random-inputs 0 --expect "$TESTDATA/bad/safetensors/offsets-hole.safetensors"
