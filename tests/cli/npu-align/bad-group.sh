# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input x '[1,8,4,4]'
op a aten.relu.default '[1,8,4,4]' x '' '"fusion_group": 0'
op b aten.relu.default '[1,8,4,4]' a
op c aten.relu.default '[1,8,4,4]' b '' '"fusion_group": 0'
output c
finish >doc.json
try npu-align doc.json
