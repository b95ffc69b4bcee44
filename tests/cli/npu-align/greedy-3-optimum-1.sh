# SPDX-License-Identifier: Apache-2.0
# One ALIGN and two NALIGN parents of an op that accepts both, an NALIGN op after it: the forward pass follows the first
# parent and converts three tensors, one conversion is enough.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
weight k '[1,64,8,8]'
op pool aten.max_pool2d.default '[1,64,4,4]' k '{"kernel_size": [2, 2]}'
op b aten.full.default '[1,64,4,4]' '' '{"size": [1, 64, 4, 4], "fill_value": 1}' '"dev_info": "NALIGN"'
op c aten.full.default '[1,64,4,4]' '' '{"size": [1, 64, 4, 4], "fill_value": 2}' '"dev_info": "NALIGN"'
op sum aten.addcmul.default '[1,64,4,4]' 'pool b c'
op end aten.view.default '[1,64,16]' sum '{"size": [1, 64, 16]}'
output end
finish >doc.json
both
npu-align doc.json --assert 'conversions==1' --assert 'greedy_conversions==3' >out.json && echo holds
