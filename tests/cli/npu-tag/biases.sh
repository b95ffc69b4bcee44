# SPDX-License-Identifier: Apache-2.0
# Decoders whose scores have a bias by position become ones with states, and write what their ONNX files do: the ids
# here are those that the files themselves choose, given all rows of the past. What an earlier, longer request has left
# in the states changes nothing.
. "$CASES/lib.sh"
onnx=$TESTDATA/onnx
printf '1 2 3 4 5 6 7 8 9 10 11\n3 4\n' >both.ids
printf '3 4\n' >short.ids
for name in slopes buckets ends; do
  echo "$name:"
  npu-tag --states --capacity 20 "$onnx/decoder_$name.onnx" -o "$name.json"
  tr -d ' \n' <"$name.json" | grep -o '"name":"[a-z_.0-9]*","op_type":"\(npu\.[a-z_]*\|aten\.\(index_select\|minimum\|log\|softmax\)\.[a-z]*\)"'
  for devices in cpu npu,cpu; do
    npu-compile -q --devices "$devices" --buckets new=1,4 "$name.json" -o "$name.npub"
    for ids in both short; do
      npu-run --generate 8 --tokens "$ids.ids" --tokens-out - "$name.npub"
    done
  done
done
try npu-tag --states --capacity 65 "$onnx/decoder_ends.onnx"
