# SPDX-License-Identifier: Apache-2.0
# An op that accepts both has the mode of its parent unless something else requires another.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input x '[1,64,4,4]'
weight w '[64,64,1,1]'
op conv aten.conv2d.default '[1,64,4,4]' 'x w'
op relu aten.relu.default '[1,64,4,4]' conv
op sigmoid aten.sigmoid.default '[1,64,4,4]' relu
op pool aten.max_pool2d.default '[1,64,2,2]' sigmoid '{"kernel_size": [2, 2]}'
op first aten.relu.default '[1,64,4,4]' x
output pool
output first
finish >doc.json
both
