# SPDX-License-Identifier: Apache-2.0
# A repeatable option takes one value; what follows is the document.
model=$CASES/npu-partition/seven_nodes.json
npu-tag --force cpu=concat "$model" | grep -c '"device_reason": "forced"'
npu-tag --force=cpu=concat --force cpu=relu "$model" | grep -c '"device_reason": "forced"'
npu-tag --assert 'nodes==7' "$model" | grep -c '"device"'
npu-tag --assert='nodes==7' --assert 'nodes<8' "$model" | grep -c '"device"'
