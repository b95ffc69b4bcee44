# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
npu-tag "$CASES/npu-partition/seven_nodes.json" >tagged.json
for n in 0 -1 2.5 two '' 1000000001 99999999999999999999; do try npu-partition tagged.json --min-nodes "$n"; done
try npu-partition tagged.json --min-nodes
