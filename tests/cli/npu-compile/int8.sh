# SPDX-License-Identifier: Apache-2.0
# A quantized model on a CPU without exact int8 products: the report says why a group is computed with floats, and the
# numbers stay the same.
. "$CASES/lib.sh"
model=$CASES/npu-run/quantized.json
NPU_MAX_ISA=generic npu-compile --no-cache --report "$model" --random-weights 1 -o float.npub 2>&1 >/dev/null | grep "is split"
npu-run -q "$model" --devices cpu --random-weights 1 --random-inputs 1 --outputs cpu.safetensors >report
NPU_MAX_ISA=generic npu-run -q float.npub --random-inputs 1 --expect cpu.safetensors >report
echo "exit $?, expect $(comparison expect <report)"
npu-compile -q --no-cache "$model" --random-weights 1 --assert 'int8_macs<=1' -o native.npub
NPU_MAX_ISA=generic npu-run float.npub --random-inputs 1 --report 2>&1 >report | grep "int8 multiply-adds" | tr -s " "
number int8_macs <report | sed "s,^0\.0$,0,"
