# SPDX-License-Identifier: Apache-2.0
# -o writes all or nothing: after a failed run the old file is intact and nothing else is left.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
mkdir out
npu-tag "$model" -o out/tagged.json
npu-tag "$model" | sed 's|testdata/models|../testdata/models|' | cmp - out/tagged.json
echo old >out/old.json
chmod 640 out/old.json
try npu-tag "$TESTDATA/bad/document/cycle.json" -o out/old.json
try npu-tag "$model" --assert 'nodes=>3' -o out/old.json
try npu-tag "$model" --assert 'speed>3' -o out/old.json
try npu-tag "$model" --force tpu=relu -o out/old.json
cat out/old.json
try npu-tag "$model" -o out/old.json
cmp out/old.json out/tagged.json
stat -c '%a %n' out/old.json out/tagged.json
echo "into a folder that is none:"
try npu-tag "$model" -o out/none/tagged.json
try npu-tag "$model" -o out
try npu-tag "$model" -o out/old.json/tagged.json
ln -s tagged.json out/link.json
try npu-tag "$model" -o out/link.json
ls out
