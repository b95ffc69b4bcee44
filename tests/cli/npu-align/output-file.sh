# SPDX-License-Identifier: Apache-2.0
# -o writes all or nothing: after a failed run the old file is intact and nothing else is left.
. "$CASES/lib.sh"
mkdir out
model=$TESTDATA/models/small/residual.json
npu-align "$model" -o out/aligned.json
echo old >out/old.json
try npu-align "$TESTDATA/bad/document/cycle.json" -o out/old.json
try npu-align "$model" --algorithm best -o out/old.json
try npu-align "$model" --assert 'cuts<3' -o out/old.json
cat out/old.json
try npu-align "$model" --assert 'conversions<1' -o out/old.json
cmp out/old.json out/aligned.json
ls out
