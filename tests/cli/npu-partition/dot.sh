# SPDX-License-Identifier: Apache-2.0
# The drawing of a small plan. The document on stdout is the same as without --dot.
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat >tagged.json
npu-partition tagged.json --dot plan.dot >with.json
npu-partition tagged.json | cmp with.json -
cat plan.dot
