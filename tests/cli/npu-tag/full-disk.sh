# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
try_to_full() { echo "\$ $* >/dev/full"; "$@" 2>&1 >/dev/full; echo "exit $?"; }
try_to_full npu-tag "$model"
try_to_full npu-tag --help
try_to_full npu-tag --version
try_to_full npu-tag --print-target
try npu-tag "$model" -o /dev/full
