# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
try_to_full() { echo "\$ $* >/dev/full"; "$@" 2>&1 >/dev/full; echo "exit $?"; }
try_to_full npu-fuse "$model"
try_to_full npu-fuse --help
try_to_full npu-fuse --version
try_to_full npu-fuse --list-patterns
try npu-fuse "$model" -o /dev/full
