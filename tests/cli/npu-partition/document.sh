# SPDX-License-Identifier: Apache-2.0
# The whole document, with keys that npu-partition does not know.
npu-tag --target "$CASES/npu-tag/small_target.json" "$CASES/npu-tag/reasons.json" | npu-partition
