# SPDX-License-Identifier: Apache-2.0
# Conversions in the document are respected; those that do nothing are removed.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input x '[1,64,4,4]'
weight w '[64,64,1,1]'
weight k '[1,64,4,4]'
op in npu.channel_norm '[1,64,4,4]' x '{"direction": false}'
op conv aten.conv2d.default '[1,64,4,4]' 'in w'
op out npu.channel_norm '[1,64,4,4]' conv '{"direction": true}'
op back npu.channel_norm '[1,64,4,4]' out '{"direction": false}'
op conv2 aten.conv2d.default '[1,64,4,4]' 'back w'
op constant npu.channel_norm '[1,64,4,4]' k '{"direction": false}'
op pool aten.max_pool2d.default '[1,64,2,2]' constant '{"kernel_size": [2, 2]}'
op twice npu.channel_norm '[1,64,4,4]' conv '{"direction": true}'
output out
output twice
finish >doc.json
both
