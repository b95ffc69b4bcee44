# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
model=$CASES/npu-tag/reasons.json
target=$CASES/npu-tag/small_target.json
try npu-tag "$model" --force cpu
try npu-tag "$model" --force =relu
try npu-tag "$model" --force cpu=
try npu-tag "$model" --force 'tpu=*'
echo "a device that cannot run it:"
try npu-tag "$model" --target "$target" --force 'npu=*'
echo "a getitem away from its producer:"
try npu-tag "$TESTDATA/models/small/multi_output.json" --force 'cpu=getitem_1' --force 'cpu=<built-in function getitem>'
