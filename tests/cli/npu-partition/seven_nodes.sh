# SPDX-License-Identifier: Apache-2.0
# The seven-node example: everything on the npu but concat gives exactly five steps.
model=$CASES/npu-partition/seven_nodes.json
npu-tag "$model" --force cpu=concat >tagged.json
for strategy in contiguous convex; do
  echo "$strategy:"
  npu-partition --strategy $strategy tagged.json | grep -E '^ +\{"(id":[0-9]+,"device|kind)"'
done
