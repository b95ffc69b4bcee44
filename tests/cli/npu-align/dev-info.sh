# SPDX-License-Identifier: Apache-2.0
# dev_info precedes every other rule; a device in it only concerns npu-tag.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input x '[1,64,4,4]'
weight w '[64,64,1,1]'
op conv aten.conv2d.default '[1,64,4,4]' 'x w' '' '"dev_info": "NALIGN"'
op relu aten.relu.default '[1,64,4,4]' conv '' '"dev_info": {"align_mode": "align"}'
op conv2 aten.conv2d.default '[1,64,4,4]' 'relu w' '' '"dev_info": "both"'
op conv3 aten.conv2d.default '[1,64,4,4]' 'conv2 w' '' '"dev_info": "npu"'
finish >doc.json
both
