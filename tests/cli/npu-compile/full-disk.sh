# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try_to_full() { echo "\$ $* >/dev/full"; "$@" 2>&1 >/dev/full; echo "exit $?"; }
try_to_full npu-compile "$TESTDATA/models/small/mlp.json"
try_to_full npu-compile --help
