# SPDX-License-Identifier: Apache-2.0
# An NALIGN op before an ALIGN one: direction false.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input x '[1,64,16]'
weight w '[64,64,1,1]'
op rows aten.relu.default '[1,64,16]' x
op view aten.view.default '[1,64,4,4]' rows '{"size": [1, 64, 4, 4]}' '"dev_info": "NALIGN"'
op conv aten.conv2d.default '[1,64,4,4]' 'view w'
op pinned aten.relu.default '[1,64,4,4]' conv '' '"dev_info": "ALIGN"'
finish >doc.json
both
