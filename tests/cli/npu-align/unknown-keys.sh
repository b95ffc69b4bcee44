# SPDX-License-Identifier: Apache-2.0
# Keys that the program does not know survive, at the top, in npu, in nodes, in tensors and in attrs.
npu-tag --target "$CASES/npu-tag/small_target.json" "$CASES/npu-tag/reasons.json" >tagged.json
npu-align tagged.json 2>/dev/null | npu-align 2>/dev/null >aligned.json
words() { tr ',{}[]' '\n\n\n\n\n' <"$1" | tr -d ' ' | sort -u; }
words tagged.json >a
words aligned.json >b
comm -23 a b
