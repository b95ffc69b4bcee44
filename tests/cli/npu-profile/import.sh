# SPDX-License-Identifier: Apache-2.0
# A published table becomes one of our own, which plans the same.
. "$CASES/lib.sh"
cp "$TESTDATA/gnn/subgraphs.json" "$TESTDATA/gnn/published.json" .
printf '{"inter_device": {"CPU_GPU": 15.0, "GPU_CPU": 15.0}, "device_switch_overhead_ms": {"CPU_GPU": 0.5}}' >rates.json
try npu-profile --import published.json --bandwidths rates.json --report -o table.json
head -n 20 table.json
npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers 2>/dev/null | grep makespan_ms >a
npu-plan --subgraphs subgraphs.json --profile table.json --no-transfers 2>/dev/null | grep makespan_ms >b
cmp a b && echo same
