# SPDX-License-Identifier: Apache-2.0
# bfloat16 crosses devices bit for bit: a chain of copies that changes device at every node gives
# back each bit of its input, infinities, NaN, subnormals and negative zero included.
. "$CASES/lib.sh"
{
  printf '\223NUMPY\1\0\166\0%-117s\n' "{'descr': '<V2', 'fortran_order': False, 'shape': (2, 8), }"
  printf '\000\000\000\200\200\077\200\277\200\177\200\377\300\177\001\000'
  printf '\177\177\001\200\111\100\253\076\377\377\000\001\110\103\200\000'
} >x.npy
npu-tag "$CASES/npu-run/bf16_chain.json" --force 'cpu=clone_[13]' | npu-partition >plan.json
npu-run plan.json --inputs x.npy --outputs y.npy >report
echo "exit $?, $(number transfers <report) transfers, $(number transfer_bytes <report) bytes"
tail -c 32 y.npy >y.tail
tail -c 32 x.npy | cmp - y.tail
head -c 6 y.npy | od -An -c
grep -a -o "'descr': '[^']*'" y.npy
echo "safetensors:"
npu-run plan.json --inputs x.npy --outputs y.safetensors >report
tail -c 32 y.safetensors | cmp - y.tail
npu-run plan.json --inputs x.npy --expect y.safetensors --rtol 0 --atol 0 >report
echo "exit $?, expect $(comparison expect <report)"
