# SPDX-License-Identifier: Apache-2.0
# Only a refusal moves nodes to another device: a backend that has no memory, fails, finds its input malformed or lies
# ends the program, with a status that says which and no output. One with an entry of old is told so.
. "$CASES/lib.sh"
NPU_BACKEND_PATH=$(dirname "$(command -v npu-run)")/../lib/npu/test-backends
export NPU_BACKEND_PATH
if [ ! -d "$NPU_BACKEND_PATH" ]; then cat "$CASES/npu-compile/backend_faults.stdout"; exit; fi
vendor_target vendor >vendor.json
npu-tag --target ./vendor.json "$CASES/npu-compile/branches.json" | npu-partition -o part.json
for fault in none compile=1 compile=2 compile=3 compile=4 compile=77 no-blob; do
  echo "$fault:"
  export WRAP_FAULT=$fault
  try npu-compile --no-cache --random-weights 0 part.json -o bundle.npub
  if [ -e bundle.npub ]; then
    npu-compile --info bundle.npub | grep -o '"backend":"[a-z]*"' | sort -u | tr '\n' ' '
    echo
  fi
  rm -f bundle.npub
done
unset WRAP_FAULT
echo "a vendor's own check, where the target's rules lack one:"
vendor_target vendor | sed 's/, "requires": \["same_shape_operands"\]//' >lax.json
cat >broadcast.json <<'J'
{"model_name": "broadcast", "weights": [], "weight_name_mapping": {},
 "graph_inputs": [{"name": "x", "shape": [64, 3], "dtype": "float32"}, {"name": "y", "shape": [3], "dtype": "float32"}],
 "graph_outputs": [{"name": "sum", "shape": [64, 3], "dtype": "float32"}],
 "nodes": [{"name": "sum", "op_type": "aten.add.Tensor", "attrs": {},
  "inputs": [{"name": "x", "shape": [64, 3], "dtype": "float32"}, {"name": "y", "shape": [3], "dtype": "float32"}],
  "outputs": [{"name": "sum", "shape": [64, 3], "dtype": "float32"}]}]}
J
npu-tag --target ./lax.json broadcast.json | npu-partition -o broadcast.part.json
try npu-compile --no-cache broadcast.part.json -o broadcast.npub
npu-run broadcast.npub --random-inputs 0 --verify cpu >report
comparison verify <report
