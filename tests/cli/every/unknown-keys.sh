# SPDX-License-Identifier: Apache-2.0
# Nothing but what a program adds on purpose is added to a document, and nothing is taken away: keys that it does not know
# survive at the top, in npu, in nodes, in tensors and in attrs. The programs behind these write documents of their own.
words() {
  tr -d ' \n' | sed 's/"target":{.*"links":[^]]*\]}//; s/"fusion":{"groups".*}},"tail"/},"tail"/
    s/,"device":"[a-z]*"//g; s/,"device_reason":"[^"]*"//g; s/,"fusion_group":[0-9]*//g; s/,"partition":[0-9]*//g; s/,,*}/}/g'
}
cp "$CASES/npu-tag/reasons.json" in.json
for tool in "npu-tag --target $CASES/npu-tag/small_target.json" npu-fuse npu-partition "npu-align --quiet"; do
  $tool in.json >out.json
  words <in.json >a
  words <out.json >b
  diff a b || echo "$tool: differs"
  mv out.json in.json
done
