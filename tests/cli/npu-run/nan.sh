# SPDX-License-Identifier: Apache-2.0
# NaN and infinity in outputs: equal to themselves, unlike numbers, and never in the report as such.
. "$CASES/lib.sh"
cat >model.json <<'END'
{"graph_inputs": [{"name": "x", "shape": [4], "dtype": "float32"}], "graph_outputs": [{"name": "sqrt"}],
 "nodes": [{"name": "sqrt", "op_type": "aten.sqrt.default", "inputs": [{"name": "x"}],
            "outputs": [{"name": "sqrt", "shape": [4], "dtype": "float32"}]}]}
END
# -1, 4, infinity, NaN
npy() { printf '\223NUMPY\1\0\166\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"; printf "$1"; }
npy '\000\000\200\277\000\000\200\100\000\000\200\177\000\000\300\177' >x.npy
npy '\000\000\200\100\000\000\200\100\000\000\200\100\000\000\200\100' >fours.npy
npu-run model.json --inputs x.npy --outputs roots.safetensors >report
npu-run model.json --inputs x.npy --expect roots.safetensors --verify npu >report
echo "exit $?, expect $(comparison expect <report), verify $(comparison verify <report)"
npu-run model.json --inputs fours.npy --expect roots.safetensors >report
echo "exit $?"
grep -o '"out_of_tolerance":.*' report
npu-tag report 2>&1 | grep -c 'error: the key'  # so the report is JSON
