# SPDX-License-Identifier: Apache-2.0
# --min-nodes moves small partitions to the next device that runs them; forced nodes stay.
. "$CASES/lib.sh"
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat >tagged.json
for n in 1 2 6; do
  echo "--min-nodes $n:"
  npu-partition tagged.json --min-nodes $n >plan.json
  grep -E '^ +\{"id":[0-9]+,"device"' plan.json | sed 's/,"inputs.*//'
  placement <plan.json | grep min
done
echo "forced:"
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat --force npu=softmax |
  npu-partition --min-nodes 100 | grep -E '^ +\{"id":[0-9]+,"device"' | sed 's/,"inputs.*//'
