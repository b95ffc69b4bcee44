# SPDX-License-Identifier: Apache-2.0
# The whole document of a small graph: reasons, certificate, operators.
npu-tag --target "$CASES/npu-tag/small_target.json" "$CASES/npu-tag/reasons.json" |
  npu-partition --strategy mincut
