# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
npu-tag "$TESTDATA/models/small/mlp.json" >tagged.json
try_to_full() { echo "\$ $* >/dev/full"; "$@" 2>&1 >/dev/full; echo "exit $?"; }
try_to_full npu-partition tagged.json
try_to_full npu-partition --help
try npu-partition tagged.json -o /dev/full
try npu-partition tagged.json --dot /dev/full
