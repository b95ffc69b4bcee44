# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
small=$TESTDATA/models/small
in="--random-inputs 0"
echo "no weights file in the document:"
try npu-run $in "$CASES/npu-partition/seven_nodes.json"
echo "a file that is not there:"
sed 's/mlp.safetensors/missing.safetensors/' "$small/mlp.json" >model.json
try npu-run $in model.json
try npu-run $in "$small/mlp.json" --weights missing.safetensors
try npu-run $in "$small/mlp.json" --weights .
echo "a file of another model:"
try npu-run $in "$small/mlp.json" --weights "$small/gru.safetensors"
echo "another shape:"
sed 's/\("\(p_first_\|first.\)weight", "shape": \)\[48, 24\]/\1[24, 48]/; s/"linear", "shape": \[4, 48\]/"linear", "shape": [4, 24]/' "$small/mlp.json" >model.json
try npu-run $in model.json --weights "$small/mlp.safetensors"
echo "another dtype:"
sed 's/\("\(p_norm_\|norm.\)bias", "shape": \[48\], "dtype": \)"float32"/\1"bfloat16"/g' "$small/mlp.json" >model.json
try npu-run $in model.json --weights "$small/mlp.safetensors"
echo "damaged files:"
size=$(wc -c <"$small/mlp.safetensors")
for bytes in 0 7 8 100 $((size - 1)); do
  head -c $bytes "$small/mlp.safetensors" >cut.safetensors
  try npu-run $in "$small/mlp.json" --weights cut.safetensors
done
{ cat "$small/mlp.safetensors"; printf x; } >long.safetensors
try npu-run $in "$small/mlp.json" --weights long.safetensors
