# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
try npu-align --algorithm fast "$model"
try npu-align --algorithm
try npu-align --weight ms "$model"
try npu-align --target tx9 "$model"
try npu-align --target missing.json "$model"
try npu-align --dot - "$model"
try npu-align --assert 'conversions=<2' "$model"
