# SPDX-License-Identifier: Apache-2.0
# --onnx-qdq: layers of attention with the same mask share it, however large it is.
. "$CASES/lib.sh"
tensor() { echo "{\"name\": \"$1\", \"shape\": [1, 2, 40, 8], \"dtype\": \"float32\", \"producer_node\": \"$1\"}"; }
layer() {
  echo "{\"name\": \"$1\", \"op_type\": \"aten.scaled_dot_product_attention.default\", \"inputs\": [$(tensor "$2"), $(tensor "$2"), $(tensor "$2")],
    \"outputs\": [$(tensor "$1")], \"attrs\": {\"dropout_p\": 0.0, \"is_causal\": true}}"
}
cat >layers.json <<DOCUMENT
{"model_name": "layers", "graph_inputs": [$(tensor x)], "graph_outputs": [$(tensor third)], "weights": [],
 "nodes": [$(layer first x), $(layer second first), $(layer third second)]}
DOCUMENT
npu-align --onnx-qdq layers.onnx layers.json >/dev/null
echo "exit $?"
grep -a -o 'causal_mask[_0-9]*' layers.onnx | sort -u
[ "$(wc -c <layers.onnx)" -lt 12800 ] && echo "one mask of 6400 bytes"
npu-run -q layers.json --random-inputs 1 --outputs third.safetensors >/dev/null
npu-run -q layers.onnx --random-inputs 1 --expect third.safetensors >report
echo "exit $?, $(comparison expect <report)"
