# SPDX-License-Identifier: Apache-2.0
# -o writes all or nothing: after a failed run the old file is intact and nothing else is left.
. "$CASES/lib.sh"
mkdir out
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat >tagged.json
npu-partition tagged.json -o out/plan.json
npu-partition tagged.json | cmp - out/plan.json
echo old >out/old.json
try npu-partition "$TESTDATA/bad/document/cycle.json" -o out/old.json
try npu-partition "$CASES/npu-partition/seven_nodes.json" -o out/old.json
try npu-partition tagged.json --strategy best -o out/old.json
try npu-partition tagged.json --assert 'cuts<3' -o out/old.json
cat out/old.json
try npu-partition tagged.json --assert 'transfers<1' -o out/old.json
cmp out/old.json out/plan.json
ls out
