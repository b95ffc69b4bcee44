# SPDX-License-Identifier: Apache-2.0
# A kept tag whose device cannot run the node is an error, like a forced one.
sed -e '/^ *{"name": "sine", "op/s/"op_type"/"device": "npu", "op_type"/' "$CASES/npu-tag/reasons.json" |
  npu-tag --keep-tags --target "$CASES/npu-tag/small_target.json"
