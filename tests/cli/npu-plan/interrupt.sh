# SPDX-License-Identifier: Apache-2.0
# Ctrl-C: no plan, no partition and nothing else is left behind. Progress shows only on a terminal.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
interrupt npu-plan graph.mtx --model graphsage.json --profile profile.json -k 2..60 --seeds 50 --gantt plan.svg -o plan.json
