# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
mkdir folder.json
try npu-tag "$model" --target hosts
try npu-tag "$model" --target xyzzy
try npu-tag "$model" --target missing.json
try npu-tag "$model" --target ./missing
try npu-tag "$model" --target folder.json
try npu-tag "$model" --target ''
try npu-tag "$model" --target
