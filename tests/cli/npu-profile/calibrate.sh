# SPDX-License-Identifier: Apache-2.0
# Ranges of a model: the same bytes each time, memory that the number of samples does not change, and what is refused.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
model=$small/mlp.json
npu-profile "$model" --calibrate "$small/mlp.inputs.safetensors" --report -o ranges.json 2>report
echo "exit $?"
sed -n '1,3p' report | tr -s ' ' | cut -d ' ' -f 1-3
npu-profile "$model" --calibrate "$small/mlp.inputs.safetensors" | cmp - ranges.json && echo same
# Twice the same sample: twice the numbers, the same extremes.
npu-profile "$model" --calibrate "$small/mlp.inputs.safetensors" --calibrate "$small/mlp.inputs.safetensors" -o twice.json
echo "samples: $(number samples <ranges.json) $(number samples <twice.json)"
for key in min max average_min average_max zeros width_exponent first_bin; do
  [ "$(grep -o "\"$key\": *[-0-9.e]*" ranges.json)" != "$(grep -o "\"$key\": *[-0-9.e]*" twice.json)" ] && echo "$key differs"
done
# A tagged, fused and partitioned document is the same model.
npu-tag "$model" | npu-fuse | npu-partition | npu-profile - --weights "$small/mlp.safetensors" \
  --calibrate "$small/mlp.inputs.safetensors" | cmp - ranges.json && echo same
# Each op alone in int8 has an error, by itself small.
sed -n '/^op alone/,$p' report | awk 'NR == 1 { print } NR > 1 { print $1, ($NF > 25 && $NF < 80) ? "25 to 80 dB" : $NF }'
npu-profile "$model" --calibrate "$small/mlp.inputs.safetensors" --error-samples 0 | grep -c '"errors"'
# Logarithms of 0: equal ones are no error, one where there was a number is the greatest error, and both can be read.
odd=$CASES/npu-profile/not_finite.json
npu-profile "$odd" --calibrate "$small/mlp.inputs.safetensors" --report -o odd.json 2>report
sed -n '/^op alone/,$p' report | awk 'NR > 1 { print $1, ($NF > 25 && $NF < 80) ? "25 to 80 dB" : $NF }'
npu-align --quantize int8 --ranges odd.json "$odd" >/dev/null
echo "exit $?"
# A device that runs the first op in int8 and not the others.
npu-profile "$odd" --target "$CASES/npu-profile/per_tensor.json" --calibrate "$small/mlp.inputs.safetensors" 2>&1 >tensor.json
echo "exit $?, $(grep -c '"errors"' tensor.json)"
# Samples without a number, at the input or behind it: the tensor is named.
filled() {
  printf '\223NUMPY\1\0\166\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 24), }"
  i=0
  while [ $i -lt 96 ]; do
    printf "$1"
    i=$((i + 1))
  done
}
filled '\000\000\300\177' >nan.npy
filled '\000\000\200\177' >inf.npy
filled '\377\377\177\177' >most.npy
try npu-profile "$model" --calibrate nan.npy
try npu-profile "$model" --calibrate inf.npy
try npu-compile --quantize int8 --calibrate nan.npy "$model" -o nan.npub
npu-profile "$model" --calibrate most.npy 2>&1 >most.json | sed "s/'[a-z_0-9]*'/'T'/"
npu-profile "$model" --calibrate nan.npy --calibrate "$small/mlp.inputs.safetensors" -o both.json
echo "exit $?, $(number non_finite <both.json) of the first tensor"
try npu-profile "$model" --calibrate missing.safetensors
try npu-profile "$model" --error-samples 1
try npu-profile "$model" --calibrate "$small/residual.inputs.safetensors"
try npu-profile "$model" --calibrate "$small/mlp.inputs.safetensors" --runs 3
try npu-profile --machine --calibrate "$small/mlp.inputs.safetensors"
try npu-profile "$TESTDATA/gnn/graphsage.json" --calibrate "$small/mlp.inputs.safetensors"
exit 0
