# SPDX-License-Identifier: Apache-2.0
# -q hides warnings and log messages, never errors; NPU_LOG does not change that.
. "$CASES/lib.sh"
model=$CASES/npu-partition/seven_nodes.json
try_silent npu-tag "$model" --force cpu=nothing
try_silent npu-tag "$model" --force cpu=nothing -q
try_silent npu-tag "$model" --force cpu=nothing --quiet --assert 'nodes==8'
try_silent npu-tag "$TESTDATA/bad/document/cycle.json" -q
NPU_LOG=debug try_silent npu-tag "$model" --force cpu=nothing -q -v
