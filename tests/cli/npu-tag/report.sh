# SPDX-License-Identifier: Apache-2.0
# --report goes to stderr; the document is the same.
npu-tag --target "$CASES/npu-tag/small_target.json" --report "$CASES/npu-tag/reasons.json" >with.json
npu-tag --target "$CASES/npu-tag/small_target.json" "$CASES/npu-tag/reasons.json" | cmp with.json -
