# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input x '[1,3,4,4]'
weight w '[3,3,1,1]'
op conv aten.conv2d.default '[1,3,4,4]' 'x w'
op relu aten.relu.default '[1,3,4,4]' conv
output relu
finish >doc.json
run() {
  echo "\$ npu-align $*"
  npu-align doc.json "$@" 2>&1 >out.json
  echo "exit $?, $(grep -c npu.channel_norm out.json) lines with npu.channel_norm"
}
# x and conv take 192 bytes, and 256 with 3 channels padded to 4. Two conversions write 256 + 192 bytes; two aligned
# tensors are 64 bytes larger each, for greedy three are.
run --assert 'conversions==2' --assert 'to_align==1' --assert 'to_nalign==1' --assert 'conversion_bytes==448' --assert 'padded_bytes==128' --assert 'greedy_padded_bytes==192' --assert 'conversion_us>0'
run --assert 'conversions<=1'
run --assert 'conversions<=1' --quiet --assert 'nodes_align==2' --assert 'nodes_both!=1'
run --assert 'conversion<=1'
run --assert 'conversions<=few'
