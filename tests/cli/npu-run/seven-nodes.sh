# SPDX-License-Identifier: Apache-2.0
# The report of the seven-node example without its times: five steps between inputs and outputs,
# each tensor copied once.
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat | npu-partition |
  npu-run --random-weights 1 --random-inputs 2 | sed -E '/^    "ms": /d; s/,"(ms|predicted_ms)":[0-9.e+-]+//g; /"transfer_bytes"/q'
