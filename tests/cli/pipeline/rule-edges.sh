# SPDX-License-Identifier: Apache-2.0
# Nodes at the edges of the rules of the device npu run in a pipe, on another device if need be, which is said: equations that
# are no product of matrices, and a pad that keeps nothing of its operand.
. "$CASES/lib.sh"
tensor() {
  printf '{"name": "%s", "shape": [%s], "dtype": "float32"}' "$1" "$2"
}
einsum() {
  printf '{"name": "%s", "op_type": "aten.einsum.default", "inputs": [%s, %s], "outputs": [%s],' "$1" "$2" "$3" "$4"
  printf '"attrs": {"equation": "%s", "_tensor_list_sizes": [2]}}' "$5"
}
x=$(tensor x 3,3)
v=$(tensor v 3,4)
cat >model.json <<END
{"model_name": "edges", "graph_inputs": [$x, $v], "weights": [], "weight_name_mapping": {},
 "graph_outputs": [$(tensor product 3,4), $(tensor twice 3,4), $(tensor alone 3), $(tensor pad 3,2)],
 "nodes": [$(einsum product "$x" "$v" "$(tensor product 3,4)" 'ij,jk->ik'),
  $(einsum twice "$x" "$v" "$(tensor twice 3,4)" 'ii,ij->ij'), $(einsum alone "$x" "$v" "$(tensor alone 3)" 'ij,ik->i'),
  {"name": "pad", "op_type": "aten.constant_pad_nd.default", "inputs": [$v], "outputs": [$(tensor pad 3,2)],
   "attrs": {"pad": [2, -4], "value": 1.5}}]}
END
npu-tag model.json -o tagged.json
placement <tagged.json
npu-partition tagged.json | npu-run --random-inputs 1 --verify cpu --rtol 1e-5 --atol 1e-6 >report
echo "as on cpu: $(comparison verify <report)"
