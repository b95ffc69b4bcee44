# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
model=$CASES/npu-run/two_inputs.json
small=$TESTDATA/models/small
run() { try npu-run "$model" "$@"; }
# x as float32 [2, 3], but named by hand, since a name that the graph lacks is a warning
npy() { printf '\223NUMPY\1\0\166\0%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': $2, }"; head -c "$3" /dev/zero; }
npy '<f4' '(2, 3)' 24 >good.npy
npy '<f4' '(3, 2)' 24 >shape.npy
npy '<f8' '(2, 3)' 48 >dtype.npy
npy '<i4' '(6,)' 24 >both.npy
echo "none at all:"
run
echo "one of two:"
run --inputs x=good.npy
echo "another shape, another dtype, both:"
run --inputs x=shape.npy --random-inputs 0
run --inputs x=dtype.npy --random-inputs 0
run --inputs x=both.npy --random-inputs 0
echo "names:"
run --inputs y=good.npy --random-inputs 0
run --inputs relu=good.npy --random-inputs 0
run --inputs good.npy --random-inputs 0
run --inputs =good.npy --random-inputs 0
echo "a safetensors file of another model:"
run --inputs "$small/bert_tiny.inputs.safetensors"
echo "files:"
mkdir folder
run --inputs missing.safetensors --random-inputs 0
run --inputs x=missing.npy --random-inputs 0
run --inputs folder --random-inputs 0
run --inputs x=folder.npy --random-inputs 0
run --inputs /dev/null --random-inputs 0
