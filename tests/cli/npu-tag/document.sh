# SPDX-License-Identifier: Apache-2.0
# The whole document: reasons why nodes are not on the preferred device, and every key that npu-tag
# does not know at the top level, in nodes, tensors, weights and npu.
npu-tag --target "$CASES/npu-tag/small_target.json" "$CASES/npu-tag/reasons.json"
