# SPDX-License-Identifier: Apache-2.0
# A group has one mode; one that cannot is split into runs, and reported.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input x '[1,64,4,4]'
weight w '[64,64,1,1]'
op conv aten.conv2d.default '[1,64,4,4]' 'x w' '' '"fusion_group": 0'
op relu aten.relu.default '[1,64,4,4]' conv '' '"fusion_group": 0'
op conv2 aten.conv2d.default '[1,64,4,4]' 'relu w' '' '"fusion_group": 1'
op relu2 aten.relu.default '[1,64,4,4]' conv2 '' '"fusion_group": 1'
op rows aten.view.default '[1,64,16]' relu2 '{"size": [1, 64, 16]}' '"fusion_group": 1'
output relu
output rows
finish >doc.json
both
npu-align doc.json --report 2>&1 >out.json | grep split
grep -o '"name": "[a-z0-9]*"\|"fusion_group": [0-9]*' out.json | paste -sd ' ' | sed 's/ "name"/\n"name"/g'
npu-align out.json | cmp out.json -
