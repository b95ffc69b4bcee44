# SPDX-License-Identifier: Apache-2.0
# Partitions of nodes that are not those of the plan, and conversions that change shapes, are refused by who reads them.
. "$CASES/lib.sh"
npu-tag "$TESTDATA/models/small/residual_bf16.json" | npu-fuse | npu-partition -s blocks >plan.json
# The thirteenth node.
awk '/^  "nodes": / { first = NR + 1 } first && NR == first + 12 { sub(/"partition": [0-9]+/, "\"partition\": 3") } { print }' \
  plan.json >moved.json
try_silent npu-align moved.json
try npu-partition --verify moved.json
npu-tag "$TESTDATA/models/small/residual_bf16.json" | sed 's/"device": "[a-z]*"/&, "partition": 1/' >no-plan.json
try_silent npu-align no-plan.json
# What the first conversion reads gets another shape wherever it stands.
npu-align plan.json >aligned.json
name=$(sed -n '/"op_type": "npu.channel_norm"/{s/.*"inputs": \[{"name":"\([^"]*\)".*/\1/p;q}' aligned.json)
sed "s/\"name\":\"$name\",\"shape\":\[1,/\"name\":\"$name\",\"shape\":[2,/g" aligned.json >shape.json
try_silent npu-align shape.json
