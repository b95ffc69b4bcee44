# SPDX-License-Identifier: Apache-2.0
# A quantized model as PyTorch exports it: what runs where and why, and the same numbers wherever its float part runs.
. "$CASES/lib.sh"
model=$CASES/npu-run/quantized.json
npu-tag "$model" | placement
npu-run -q "$model" --devices cpu --random-inputs 1 --outputs cpu.safetensors >report
npu-tag "$model" | npu-partition | npu-run --random-inputs 1 --expect cpu.safetensors >report
echo "exit $?, expect $(comparison expect <report)"
