# SPDX-License-Identifier: Apache-2.0
# --expect: exit 4 and the report if outputs differ, are missing or have another type.
. "$CASES/lib.sh"
model=$CASES/npu-run/two_inputs.json
npu-run "$model" --devices npu --random-inputs 1 --outputs one.safetensors >report
npu-run "$model" --devices npu --random-inputs 2 --outputs two.safetensors >report
run() {
  npu-run "$model" --devices npu --random-inputs 1 "$@" >report
  echo "exit $?, expect $(comparison expect <report)"
  sed -n '/"expect"/,/^  }/s/^      //p' report | sed 's/"max_abs":[^]]*\("out_of_tolerance":[0-9]*\).*}/\1/'
}
echo "the same:"
run --expect one.safetensors
echo "other values:"
run --expect two.safetensors
echo "within a wide tolerance (bool is always exact):"
run --expect two.safetensors --atol 100
echo "another model's:"
run --expect "$TESTDATA/models/small/gru.outputs.safetensors"
echo "a single output may have any name, but not any shape:"
model=$TESTDATA/models/small/empty.json
npu-run "$model" --devices npu --random-inputs 1 --outputs x.safetensors >report
sed 's/"x":/"y":/' x.safetensors >y.safetensors
run --expect y.safetensors
run --expect "$TESTDATA/models/small/mlp.outputs.safetensors"
