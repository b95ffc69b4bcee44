# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
npu-tag "$CASES/npu-partition/seven_nodes.json" >tagged.json
try npu-partition tagged.json --strategy contigous
try npu-partition tagged.json -s ''
try npu-partition tagged.json --strategy
