# SPDX-License-Identifier: Apache-2.0
# Results of rank 1 and 3 are NALIGN, even those of ops that are otherwise ALIGN.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input x '[8,64,16]'
weight m '[16,16]'
weight w '[64,64,1]'
op linear aten.linear.default '[8,64,16]' 'x m'
op conv aten.conv1d.default '[8,64,16]' 'linear w'
op flat aten.mean.dim '[8]' conv '{"dim": [1, 2]}'
op wide aten.mean.dim '[8,16]' conv '{"dim": [1]}'
output flat
output wide
finish >doc.json
both
