# SPDX-License-Identifier: Apache-2.0
# --force takes a glob of op types or node names; the last match wins; a forced node says so.
. "$CASES/lib.sh"
model=$CASES/npu-partition/seven_nodes.json
echo "by op type:"
npu-tag "$model" --force 'cpu=aten.relu.*' | placement
echo "by node name:"
npu-tag "$model" --force 'cpu=relu?' | placement
echo "several, the last match wins:"
npu-tag "$model" --force 'cpu=*' --force 'npu=[cr]*' --force 'cpu=concat' | placement
echo "nothing matches:"
try_silent npu-tag "$model" --force 'cpu=aten.gelu*' --force 'cpu=relu9'
try_silent npu-tag "$model" --force 'cpu=aten.gelu*' --quiet
