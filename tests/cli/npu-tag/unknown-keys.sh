# SPDX-License-Identifier: Apache-2.0
# Nothing but device, device_reason and npu.target is added to a document; nothing is taken away.
model=$CASES/npu-tag/reasons.json
target=$CASES/npu-tag/small_target.json
npu-tag --target "$target" "$model" >tagged.json
words() { tr -d ' \n' <"$1" | sed 's/"target":{.*"links":[^]]*\]}//; s/,"device":"[a-z]*"//g; s/,"device_reason":"[^"]*"//g; s/,}/}/g'; }
words "$model" >a
words tagged.json >b
diff a b
