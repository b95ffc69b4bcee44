# SPDX-License-Identifier: Apache-2.0
# Without GRAPH and with a terminal as stdin the program says so instead of waiting. script(1) makes
# the terminal.
command -v script >/dev/null || { echo "npu-align: error: no GRAPH given and stdin is a terminal"; echo "Try 'npu-align --help'."; exit 2; }
script -qec npu-align /dev/null </dev/null | tr -d '\r'
script -qec npu-align /dev/null </dev/null >/dev/null
