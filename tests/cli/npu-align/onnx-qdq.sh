# SPDX-License-Identifier: Apache-2.0
# --onnx-qdq: the file runs as the document does, weights are int8 in it, norms are in the scales of convolutions, the same bytes
# each time, and refusals that leave nothing.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
cp "$small"/*.json "$small"/*.safetensors .
# What the document computes on cpu is what the file gives, but for roundings of float32: no integer differs, and but for attention,
# which is one op here and several there, and which some integers differ behind by one.
for model in residual mlp bert_tiny depthwise; do
  npu-profile $model.json --calibrate $model.inputs.safetensors -o $model.ranges.json
  npu-align --quantize int8 --ranges $model.ranges.json --onnx-qdq $model.onnx $model.json -o $model.q.json
  npu-align --quantize int8 --ranges $model.ranges.json $model.json | cmp - $model.q.json && echo "$model: same document"
  npu-align --onnx-qdq again.onnx $model.q.json | cmp - $model.q.json && cmp again.onnx $model.onnx && echo "$model: same file"
  npu-run -q --devices cpu $model.q.json --inputs $model.inputs.safetensors --outputs quantized.safetensors >/dev/null
  atol=1e-3
  [ $model = bert_tiny ] && atol=0.05
  for devices in cpu npu,cpu; do
    npu-run -q --devices $devices $model.onnx --inputs $model.inputs.safetensors --expect quantized.safetensors --atol $atol >report
    echo "$model on $devices: exit $?, $(comparison expect <report)"
  done
done
npu-tag residual.onnx >imported.json
count() { echo "$1: $(grep -o "\"op_type\": *\"[^\"]*$1[^\"]*\"" imported.json | wc -l)"; }
count batch_norm
count conv2d
count quantize_per_channel
echo "$(grep -c '"dtype": *"int8"' imported.json) lines with int8"
# Documents in float: every op that has a form, on models that hold many.
for model in conv_kinds dtypes encoder gpt_small gru in_place_view inception index_none lifted_constants lstm multi_output plain_norms \
  self_attention shapes squeeze_excite several_outputs tied_weights scalar_math; do
  npu-align -q --onnx-qdq $model.onnx $model.json 2>err >/dev/null || { echo "$model: $(head -n 1 err)"; continue; }
  npu-run -q $model.onnx --inputs $model.inputs.safetensors --expect $model.outputs.safetensors >report
  echo "$model: exit $?, $(comparison expect <report)"
done
# A norm whose factors are negative and 0 behind integers.
cat >signs.json <<'DOCUMENT'
{"model_name": "signs", "graph_inputs": [{"name": "x", "shape": [1, 1, 2, 2], "dtype": "float32"}],
 "graph_outputs": [{"name": "norm", "shape": [1, 3, 2, 2], "dtype": "float32", "producer_node": "norm"}],
 "weights": [{"name": "w", "shape": [3, 1, 1, 1], "dtype": "int8"}, {"name": "s", "shape": [3], "dtype": "float32"},
  {"name": "z", "shape": [3], "dtype": "int64"}, {"name": "b", "shape": [3], "dtype": "float32"},
  {"name": "gamma", "shape": [3], "dtype": "float32"}, {"name": "beta", "shape": [3], "dtype": "float32"},
  {"name": "mean", "shape": [3], "dtype": "float32"}, {"name": "var", "shape": [3], "dtype": "float32"}],
 "constants": {"w": {"data": [[[[100]]], [[[-50]]], [[[25]]]]}, "s": {"data": [0.01, 0.02, 0.04]}, "z": {"data": [0, 0, 0]},
  "b": {"data": [0.5, -1, 2]}, "gamma": {"data": [-2, 0, 3]}, "beta": {"data": [1, 2, 3]}, "mean": {"data": [0.25, 0.5, 1]},
  "var": {"data": [1, 4, 0.25]}},
 "nodes": [
  {"name": "x_q", "op_type": "quantized_decomposed.quantize_per_tensor.default", "inputs": [{"name": "x", "shape": [1, 1, 2, 2],
   "dtype": "float32", "producer_node": "x"}], "outputs": [{"name": "x_q", "shape": [1, 1, 2, 2], "dtype": "int8"}],
   "attrs": {"scale": 0.5, "zero_point": 0, "quant_min": -100, "quant_max": 100, "dtype": "torch.int8"}},
  {"name": "x_dq", "op_type": "quantized_decomposed.dequantize_per_tensor.default", "inputs": [{"name": "x_q",
   "shape": [1, 1, 2, 2], "dtype": "int8", "producer_node": "x_q"}], "outputs": [{"name": "x_dq", "shape": [1, 1, 2, 2],
   "dtype": "float32"}], "attrs": {"scale": 0.5, "zero_point": 0, "quant_min": -100, "quant_max": 100, "dtype": "torch.int8"}},
  {"name": "w_dq", "op_type": "quantized_decomposed.dequantize_per_channel.default", "inputs": [{"name": "w",
   "shape": [3, 1, 1, 1], "dtype": "int8"}, {"name": "s", "shape": [3], "dtype": "float32"}, {"name": "z", "shape": [3],
   "dtype": "int64"}], "outputs": [{"name": "w_dq", "shape": [3, 1, 1, 1], "dtype": "float32"}],
   "attrs": {"axis": 0, "quant_min": -127, "quant_max": 127, "dtype": "torch.int8"}},
  {"name": "conv", "op_type": "aten.conv2d.default", "inputs": [{"name": "x_dq", "shape": [1, 1, 2, 2], "dtype": "float32",
   "producer_node": "x_dq"}, {"name": "w_dq", "shape": [3, 1, 1, 1], "dtype": "float32", "producer_node": "w_dq"}, {"name": "b",
   "shape": [3], "dtype": "float32"}], "outputs": [{"name": "conv", "shape": [1, 3, 2, 2], "dtype": "float32"}]},
  {"name": "norm", "op_type": "aten.batch_norm.default", "inputs": [{"name": "conv", "shape": [1, 3, 2, 2], "dtype": "float32",
   "producer_node": "conv"}, {"name": "gamma", "shape": [3], "dtype": "float32"}, {"name": "beta", "shape": [3],
   "dtype": "float32"}, {"name": "mean", "shape": [3], "dtype": "float32"}, {"name": "var", "shape": [3], "dtype": "float32"}],
   "outputs": [{"name": "norm", "shape": [1, 3, 2, 2], "dtype": "float32"}],
   "attrs": {"training": false, "momentum": 0.1, "eps": 0.0, "cudnn_enabled": true}}]}
DOCUMENT
npu-align --onnx-qdq signs.onnx signs.json >/dev/null
npu-run -q --devices cpu signs.json --random-inputs 1 --outputs signs.safetensors >/dev/null
npu-run -q --devices cpu signs.onnx --random-inputs 1 --expect signs.safetensors --atol 1e-3 >report
echo "signs: exit $?, $(comparison expect <report)"
# Faults, all of them at once, and no file.
sed 's/"aten.gelu.default"/"aten.frobnicate.default"/; s/"aten.log_softmax.int"/"aten.cummax.default"/' mlp.json >odd.json
try_silent npu-align --onnx-qdq no.onnx odd.json
try_silent npu-align --onnx-qdq no.onnx "$TESTDATA/models/mobilenet_v2.json"
try_silent npu-align --onnx-qdq - mlp.json
try_silent npu-align --onnx-qdq no.onnx --dot x.dot mlp.json
try_silent npu-align --onnx-qdq no.onnx --verify mlp.q.json
try_silent npu-align --random-weights 1 mlp.json
try_silent npu-align --onnx-qdq missing/no.onnx mlp.q.json
try_silent npu-align --onnx-qdq /dev/full mlp.q.json
ls no.onnx 2>/dev/null
exit 0
