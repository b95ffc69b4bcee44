# SPDX-License-Identifier: Apache-2.0
# Links between the processes of a launcher, measured, and what npu-plan makes of them.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
plan() { npu-plan -q graph.mtx --model graphsage.json --profile profile.json --partitioner metis -k 8 --pad 16 --devices cpu "$@"; }
# Of three ranks: from 0 to 1 at 1 MB/s, everything else at 1 GB/s.
link() { printf '{"from": %d, "to": %d, "bytes_per_second": %d, "latency_us": %s}' "$@"; }
links() {
  printf '{"npu": {"version": 1, "kind": "links"}, "ranks": 3, "links": [%s, %s, %s, %s, %s%s]}\n' "$(link 0 1 1000000 100)" \
    "$(link 0 2 1000000000 10)" "$(link 1 0 1000000000 10)" "$(link 1 2 1000000000 10)" "$(link 2 0 1000000000 10)" "$1"
}
links ", $(link 2 1 1000000000 10)" >slow.json
npu-plan -q graph.mtx --model graphsage.json --profile profile.json --partitioner metis -k 8 --pad 16 --devices cpu --ranks 3 --links slow.json --report \
  -o plan.json 2>&1 >/dev/null | grep '^predicted for'
npu-plan --verify plan.json | grep '"ok"'
sed 's/"bytes_per_second": *1000000,/"bytes_per_second":2000000,/' plan.json >changed.json
cp plan.part changed.part
try npu-plan --verify changed.json
sed 's/"latency_us": *100[.0]*/"latency":1/' plan.json >changed.json
try npu-plan --verify changed.json
# Links that are missing, twice there, of fewer ranks, or none at all.
links '' >missing.json
links ", $(link 0 1 5 5)" >twice.json
try plan --ranks 2 --links missing.json -o out.json
try plan --ranks 2 --links twice.json -o out.json
try plan --ranks 2 --links profile.json -o out.json
try plan --ranks 4 --links slow.json -o out.json
try plan --ranks 2 --links slow.json --rank-bandwidth 1M -o out.json
try plan --links slow.json -o out.json
try npu-profile --links links.json
try npu-profile graphsage.json --links links.json
try npu-profile --machine --links links.json
ls links.json 2>/dev/null
# What is measured has every pair, and can be planned with.
need_mpi
together 3 npu-profile --links links.json || echo "exit $?"
tr -d ' \n' <links.json | grep -o '"from":[0-9],"to":[0-9],"bytes_per_second":[1-9]' | wc -l
plan --ranks 3 --links links.json -o measured.json
npu-plan --verify measured.json | grep '"ok"'
