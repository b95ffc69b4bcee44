# SPDX-License-Identifier: Apache-2.0
# Fusion groups are never split, so they have to be on one device and convex.
. "$CASES/lib.sh"
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat >tagged.json
group() { sed -E "/\"name\": \"($1)\", \"op/s/\"device\":/\"fusion_group\": 0, \"device\":/" tagged.json; }
echo "on two devices:"
group 'relu2|concat' | try npu-partition
echo "not convex:"
group 'relu2|softmax' | try npu-partition
echo "good:"
group 'matmul|add|relu2' | npu-partition | grep -c '"kind"'
