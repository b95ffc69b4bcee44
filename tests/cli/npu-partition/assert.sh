# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat >tagged.json
part() {
  echo "\$ npu-partition $*"
  npu-partition tagged.json "$@" 2>&1 >out.json
  echo "exit $?, $(grep -c '"kind"' out.json) steps"
}
# relu2 is 1*8*8*8 floats, concat twice that: 2048 + 4096 = 6144 bytes
part --assert 'partitions==3' --assert 'partitions_npu==2' --assert 'transfers==2' --assert 'transfer_bytes==6144' --assert 'predicted_us>0'
part --assert 'transfers<=1' --assert 'partitions==3' --assert 'copied_bytes<6144'
part --assert 'transfers<=1' --quiet
part --assert 'transfer<=1'
part --assert 'transfers<=few'
part --assert 'transfers'
