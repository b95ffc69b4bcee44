# SPDX-License-Identifier: Apache-2.0
# The full-size operand decides; the one that is broadcast is compatible with both layouts.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input row '[1,1,1,4]'
input x '[1,64,4,4]'
weight w '[64,64,1,1]'
weight scale '[64,1,1]'
op conv aten.conv2d.default '[1,64,4,4]' 'x w'
op add aten.add.Tensor '[1,64,4,4]' 'row conv'
op mul aten.mul.Tensor '[1,64,4,4]' 'add scale'
op pool aten.max_pool2d.default '[1,64,2,2]' mul '{"kernel_size": [2, 2]}'
op plain aten.add.Tensor '[1,64,4,4]' 'row x'
output plain
finish >doc.json
both
