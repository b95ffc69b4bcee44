# SPDX-License-Identifier: Apache-2.0
# No binary is written to a terminal.
command -v script >/dev/null || { echo "skipped: no script(1) (Debian package bsdutils)"; exit 77; }
script -qec "npu-compile $TESTDATA/models/small/mlp.json" /dev/null </dev/null | tr -d '\r'
