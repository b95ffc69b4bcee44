# SPDX-License-Identifier: Apache-2.0
# Caches that grow become states: of ONNX decoders with and without a mask and positions, and what is refused.
. "$CASES/lib.sh"
onnx=$TESTDATA/onnx
for name in masked window buffer scatter; do
  echo "$name:"
  capacity=
  case $name in masked | window) capacity="--capacity 16" ;; esac
  # shellcheck disable=SC2086 # an option, or none
  npu-tag --states $capacity "$onnx/decoder_$name.onnx" -o "$name.json"
  flat=$(tr -d ' \n' <"$name.json")
  printf '%s\n' "$flat" | sed 's/.*"graph_inputs":\[\(.*\)\],"graph_outputs".*/\1/'
  printf '%s\n' "$flat" | grep -o '"\(states\|generate\|symbols\)":[[{][^]}]*'
  printf '%s\n' "$flat" | grep -o '"op_type":"\(npu\.[a-z_]*\|aten\.\(cat\|index_copy\|scaled_dot_product_attention\|softmax\)\.[a-z]*\)"'
  printf '%s\n' "$flat" | grep -o '"attrs":{"\(operands\|scale\|enable_gqa\)[^}]*}'
done
echo "by its configuration:"
cat >genai_config.json <<'END'
{"model": {"decoder": {"inputs": {"input_ids": "input_ids", "position_ids": "places"}, "outputs": {"logits": "logits"}}},
 "search": {"max_length": 20}}
END
npu-tag --states --genai genai_config.json "$onnx/decoder_window.onnx" | tr -d ' \n' | grep -o '"generate":{[^}]*}\|"max":[0-9]*'
echo '{"search": {"max_length": "long"}}' >bad.json
try npu-tag --states --genai bad.json "$onnx/decoder_window.onnx"
echo "as a device runs it:"
npu-tag --bind new=3 --devices cpu window.json | npu-partition | npu-run --random-inputs 1 --outputs out.safetensors >run.json
echo "exit $?"
echo "padded:"
npu-align --bucket new=4 masked.json >padded.json
try npu-tag --states --capacity 16 "$onnx/decoder_reads.onnx"
try npu-tag --states --capacity 16 "$onnx/cached.onnx"
try npu-tag --states --capacity 24 "$onnx/decoder_buffer.onnx"
try npu-tag --states --capacity 16 "$TESTDATA/models/small/mlp.json"
try npu-tag --states "$onnx/decoder_masked.onnx"
try npu-tag --capacity 16 "$onnx/decoder_masked.onnx"
try npu-tag --states --capacity 0 "$onnx/decoder_masked.onnx"
