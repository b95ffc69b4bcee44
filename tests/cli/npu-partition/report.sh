# SPDX-License-Identifier: Apache-2.0
# --report goes to stderr; the document is the same. The target is artificial, so times are fixed.
npu-tag --target "$CASES/npu-tag/small_target.json" "$CASES/npu-tag/reasons.json" >tagged.json
npu-partition --report tagged.json >with.json
npu-partition tagged.json | cmp with.json -
