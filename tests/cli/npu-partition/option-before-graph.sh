# SPDX-License-Identifier: Apache-2.0
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat >tagged.json
npu-partition --assert 'transfers==2' tagged.json | grep -c '"kind"'
