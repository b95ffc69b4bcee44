# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
cp "$TESTDATA/models/small/mlp.json" model.json
try_to_full() { echo "\$ $* >/dev/full"; "$@" 2>&1 >/dev/full; echo "exit $?"; }
try_to_full npu-align model.json
try_to_full npu-align --help
try npu-align model.json -o /dev/full
try npu-align model.json --dot /dev/full
