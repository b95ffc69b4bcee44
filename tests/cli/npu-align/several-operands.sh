# SPDX-License-Identifier: Apache-2.0
# Several operands of one op conflict, one of them twice, and another op shares a conversion.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input x '[1,64,4,4]'
input y '[1,64,4,4]'
op cat aten.cat.default '[1,256,4,4]' 'x y x y' '{"dim": 1, "_tensor_list_sizes": [4]}'
op cat2 aten.cat.default '[1,128,4,4]' 'y cat' '{"dim": 1, "_tensor_list_sizes": [2]}'
op end aten.add.Tensor '[1,64,4,4]' 'x y'
output end
finish >doc.json
both
