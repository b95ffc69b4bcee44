# SPDX-License-Identifier: Apache-2.0
# Only a refusal moves nodes to another device: a backend that has no memory, fails, finds its input malformed or lies
# ends the program, with a status that says which and no output. So does one that describes nonsense.
. "$CASES/lib.sh"
NPU_BACKEND_PATH=$(dirname "$(command -v npu-run)")/../lib/npu/test-backends
export NPU_BACKEND_PATH
if [ ! -d "$NPU_BACKEND_PATH" ]; then cat "$CASES/npu-compile/backend_faults.stdout"; exit; fi
vendor_target wrap >wrap.json
npu-tag --target ./wrap.json "$CASES/npu-compile/branches.json" | npu-partition -o part.json
for fault in none compile=1 compile=2 compile=3 compile=4 compile=77 lie; do
  echo "$fault:"
  export WRAP_FAULT=$fault
  try npu-compile --no-cache --random-weights 0 part.json -o bundle.npub
  if [ -e bundle.npub ]; then
    npu-compile --info bundle.npub | grep -o '"backend":"[a-z]*"' | sort -u | tr '\n' ' '
    echo
  fi
  rm -f bundle.npub
done
for fault in rank=0x10000000 rank=60 rank=1 negative null-result only=2 only=3 only=4; do
  echo "$fault:"
  export WRAP_FAULT=$fault
  npu-run --no-cache --random-weights 0 --random-inputs 0 part.json 2>&1 >report | sed "s|/.*/npu_backend|.../npu_backend|"
  if [ -s report ]; then echo "ran"; fi
done
echo "a vendor's own check, where the target's rules lack one:"
unset WRAP_FAULT
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
