# SPDX-License-Identifier: Apache-2.0
# The drawing of a partitioned document. The document on stdout is the same as without --dot.
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat | npu-partition >plan.json
npu-align plan.json --dot plan.dot >with.json
npu-align plan.json | cmp with.json -
cat plan.dot
