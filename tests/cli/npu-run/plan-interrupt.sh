# SPDX-License-Identifier: Apache-2.0
# Ctrl-C while a plan runs: no output files. Progress shows only on a terminal.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
npu-plan graph.mtx --model graphsage.json --profile profile.json -k 5 --pad 16 -o plan.json 2>/dev/null
interrupt npu-run plan.json --features x.npy --device gpu=aten --bench 100000 --outputs out.npy --trace trace.json
