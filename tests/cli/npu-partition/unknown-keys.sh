# SPDX-License-Identifier: Apache-2.0
# Nothing but partition and npu.partition is added to a document; nothing is taken away.
npu-tag --target "$CASES/npu-tag/small_target.json" "$CASES/npu-tag/reasons.json" >tagged.json
npu-partition tagged.json >plan.json
words() { tr -d ' \n' <"$1" | sed 's/"partition":{"strategy".*}},"tail"/},"tail"/; s/,"partition":[0-9]*//g; s/,}/}/g'; }
words tagged.json >a
words plan.json >b
diff a b
