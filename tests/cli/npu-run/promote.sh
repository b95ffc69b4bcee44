# SPDX-License-Identifier: Apache-2.0
# Operands of different dtypes are refused with both dtypes and the node, or promoted with --promote.
. "$CASES/lib.sh"
cat >mixed.json <<'JSON'
{"model_name": "mixed", "pytorch_version": "2.4.0",
 "graph_inputs": [{"name": "x", "shape": [2, 3], "dtype": "bfloat16"}, {"name": "w", "shape": [4, 3], "dtype": "float32"}],
 "graph_outputs": [{"name": "linear", "shape": [2, 4], "dtype": "float32"}],
 "weights": [], "weight_name_mapping": {},
 "nodes": [{"name": "linear", "op_type": "aten.linear.default",
   "inputs": [{"name": "x", "shape": [2, 3], "dtype": "bfloat16"}, {"name": "w", "shape": [4, 3], "dtype": "float32"}],
   "outputs": [{"name": "linear", "shape": [2, 4], "dtype": "float32"}], "attrs": {}}]}
JSON
try_silent npu-run --random-inputs 0 mixed.json
npu-run --random-inputs 0 --promote mixed.json --outputs untagged.safetensors | grep -A 6 '"outputs"' | grep dtype
npu-tag mixed.json | npu-partition | npu-run --promote --random-inputs 0 --expect untagged.safetensors --rtol 0 --atol 0 | comparison expect
echo "an op that promotes by itself needs no option:"
sed 's/aten.linear.default/aten.add.Tensor/; s/\[4, 3\]/[2, 3]/g; s/\[2, 4\]/[2, 3]/g' mixed.json >add.json
npu-run --random-inputs 0 add.json | number transfers
