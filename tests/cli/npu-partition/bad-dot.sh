# SPDX-License-Identifier: Apache-2.0
# If the drawing cannot be written, nothing is.
. "$CASES/lib.sh"
npu-tag "$CASES/npu-partition/seven_nodes.json" >tagged.json
mkdir folder
try npu-partition tagged.json --dot folder
try npu-partition tagged.json --dot missing/plan.dot
try npu-partition tagged.json --dot
ls
try npu-partition tagged.json --dot plan.dot --dot-level tensor
try npu-partition tagged.json --dot-level node
