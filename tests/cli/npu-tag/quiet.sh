# SPDX-License-Identifier: Apache-2.0
# -q hides warnings, never errors. -v is accepted and changes nothing in the document.
. "$CASES/lib.sh"
model=$CASES/npu-partition/seven_nodes.json
try_silent npu-tag "$model" --force cpu=nothing
try_silent npu-tag "$model" --force cpu=nothing -q
try_silent npu-tag "$model" --force cpu=nothing --quiet --assert 'nodes==8'
try_silent npu-tag "$TESTDATA/bad/document/cycle.json" -q
npu-tag "$model" >a
npu-tag -v -v --verbose -vv "$model" | cmp a -
