# SPDX-License-Identifier: Apache-2.0
# A repeatable option takes one value; what follows is the document.
model=$CASES/npu-partition/seven_nodes.json
empty=$TESTDATA/models/small/empty.json
# "COMMAND: N lines with PATTERN"
#   count PATTERN COMMAND...
count() {
  pattern=$1
  shift
  echo "$*: $("$@" --quiet | grep -c "$pattern")"
}
count '"device_reason": "forced"' npu-tag --force cpu=concat "$model"
count '"device_reason": "forced"' npu-tag --force=cpu=concat --force cpu=relu "$model"
count '"device"' npu-tag --assert 'nodes==7' "$model"
count '"device"' npu-tag --assert='nodes==7' --assert 'nodes<8' "$model"
npu-tag --force cpu=concat "$model" >tagged.json
count '"fusion_group"' npu-fuse --assert 'nodes==7' tagged.json
count '"kind"' npu-partition --assert 'transfers==2' tagged.json
count 'npu.channel_norm' npu-align --assert 'conversions<=9' "$TESTDATA/models/small/residual.json"
count '"model_name": "empty"' npu-compile --assert 'partitions==0' "$empty"
count '"model": "empty"' npu-run --random-inputs 0 --assert 'transfers==0' "$empty"
count '"model": "empty"' npu-run --inputs "$TESTDATA/models/small/empty.inputs.safetensors" "$empty"
