# SPDX-License-Identifier: Apache-2.0
# A table has to be of the model and the devices that are planned for; its links and limits count.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
plan() { try_silent npu-plan graph.mtx --model graphsage.json --profile table.json -k 2 --pad 16 -o plan.json "$@"; }
sed 's/"devices":/"model": "gat", "model_hash": "0123456789abcdef", "devices":/' profile.json >table.json
plan
sed 's/"static": true/"static": true, "rules": "00"/; s/"devices":/"target": "mine", "devices":/' profile.json >table.json
plan
plan --target tpu
sed 's/"first": 7,/"layer": 9, "first": 7,/' profile.json >table.json
plan
sed 's/{"from": "npu", "to": "gpu"[^}]*}/{"from": "npu", "to": "cpu", "bytes_per_s": 1}/' profile.json >table.json
plan
sed 's/"name": "\([a-z]*\)"/"name": "\1", "memory_bytes": 1000/g' profile.json >table.json
plan
plan --memory cpu=100000000 --memory gpu=100000000
try_silent npu-plan graph.mtx --model graphsage.json --profile profile.json --pad 32001
for rates in '{"inter_device": {"CPU_GUP": 15}}' '{"inter_device": {"CPU": 15}}' '{"inter_device": {"CPU_GPU": "fast"}}' \
  '{"inter_device": {"CPU_GPU": 1}, "device_switch_overhead_ms": {"GPU_CPU": 1}}' '{"inter_device": {"CPU_GPU": 15}}'; do
  echo "$rates" >rates.json
  try_silent npu-plan --subgraphs subgraphs.json --profile published.json --bandwidths rates.json
done
