# SPDX-License-Identifier: Apache-2.0
# Inputs that are missing, of another kind or damaged; nothing is written.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
plan() { try npu-plan "$@"; }
plan missing.mtx --model graphsage.json --profile profile.json
plan . --model graphsage.json --profile profile.json
plan graph.mtx --model profile.json --profile profile.json
plan graph.mtx --model graphsage.json --profile graphsage.json
plan graph.mtx --model graphsage.json --profile subgraphs.json
plan profile.json --model graphsage.json --profile profile.json
printf '{"1,2,CPU": {"total_time_ms": 1}}' >key.json
plan --subgraphs subgraphs.json --profile key.json --no-transfers
printf '{"1,2,CPU,1": {"total_time_ms": -1}}' >negative.json
plan --subgraphs subgraphs.json --profile negative.json --no-transfers
printf '{}' >empty.json
plan --subgraphs subgraphs.json --profile empty.json --no-transfers
for text in '[]' '[{"id": 0, "n": 0, "m": 1}]' '[{"id": 0, "n": 1, "m": 1}, {"id": 0, "n": 1, "m": 1}]' '[{"id": 0}]' '[' '3'; do
  printf '%s' "$text" >bad.json
  plan --subgraphs bad.json --profile published.json --no-transfers
done
sed 's/"id": 3,/"id": 4,/' graphsage.json >ids.json
plan graph.mtx --model ids.json --profile profile.json
sed 's/"name": "gathered"/"name": "other"/' graphsage.json >names.json
plan graph.mtx --model names.json --profile profile.json
sed 's/"inputs": *\[{/"inputs": [7, {/' graphsage.json >types.json
plan graph.mtx --model types.json --profile profile.json
plan --verify profile.json
plan --verify missing.json
