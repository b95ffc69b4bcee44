# SPDX-License-Identifier: Apache-2.0
# -v logs what was done and how long it took, -vv also why; NPU_LOG does so by module, and invalid values are
# refused. The document stays the same.
. "$CASES/lib.sh"
model=$CASES/npu-partition/seven_nodes.json
npu-tag "$model" >a
npu-tag -v "$model" 2>log | cmp a -
mask_log log
npu-tag -v -v --verbose -vv "$model" 2>log | cmp a -
mask_log log
NPU_LOG=read=info npu-tag "$model" 2>log | cmp a -
mask_log log
NPU_LOG=off npu-tag -vv "$model" | cmp a -
NPU_LOG=cash=info try npu-tag "$model"
NPU_LOG=cache=loud try npu-tag "$model"
NPU_LOG=loud npu-tag --version | grep -c npu-tag
