# SPDX-License-Identifier: Apache-2.0
# --onnx-qdq: functions of several ONNX ops keep their digits where a difference would lose them, and any and all along no
# dimension reduce nothing.
. "$CASES/lib.sh"
tensor() { echo "{\"name\": \"$1\", \"shape\": [8, 64], \"dtype\": \"${2:-float32}\", \"producer_node\": \"$1\"}"; }
# node NAME OP ATTRIBUTES INPUT [DTYPE]
node() {
  echo "{\"name\": \"$1\", \"op_type\": \"aten.$2\", \"inputs\": [$(tensor "$4")], \"outputs\": [$(tensor "$1" "${5:-}")], \"attrs\": {$3}}"
}
cat >functions.json <<DOCUMENT
{"model_name": "functions", "graph_inputs": [$(tensor x)], "weights": [],
 "graph_outputs": [$(tensor log1p), $(tensor log1p_wide), $(tensor expm1), $(tensor expm1_wide), $(tensor erfc), $(tensor erfc_low),
  $(tensor any bool), $(tensor all bool)],
 "nodes": [$(node small mul.Tensor '"other": 1e-06' x), $(node wide mul.Tensor '"other": 20.0' x), $(node positive abs.default '' wide),
  $(node log1p log1p.default '' small), $(node log1p_wide log1p.default '' positive),
  $(node expm1 expm1.default '' small), $(node expm1_wide expm1.default '' wide),
  $(node factor mul.Tensor '"other": 1.5' x), $(node tail add.Tensor '"other": 4.0' factor),
  $(node erfc erfc.default '' tail), $(node erfc_low erfc.default '' factor),
  $(node whole trunc.default '' x), $(node any any.dims '"dim": []' whole bool), $(node all all.dims '"dim": []' whole bool)]}
DOCUMENT
npu-align --onnx-qdq functions.onnx functions.json >/dev/null
npu-run -q --devices cpu functions.json --random-inputs 1 --outputs expected.safetensors >/dev/null
# oneDNN's logarithm has an absolute error of 2e-6 near 1.
for devices in 'cpu 0' 'npu,cpu 5e-6'; do
  npu-run -q --devices ${devices% *} functions.onnx --random-inputs 1 --expect expected.safetensors --rtol 5e-6 \
    --atol ${devices#* } >report
  echo "${devices% *}: exit $?, $(comparison expect <report)"
done
