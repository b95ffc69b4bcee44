# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
cp "$TESTDATA/gnn/subgraphs.json" "$TESTDATA/gnn/published.json" .
try_to_full() { echo "\$ $* >/dev/full"; "$@" 2>&1 >/dev/full; echo "exit $?"; }
try_to_full npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers
try npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers -o /dev/full
try npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers --gantt /dev/full
