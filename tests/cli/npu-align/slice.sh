# SPDX-License-Identifier: Apache-2.0
# A slice that begins after 0 and ends at a multiple of 64 on the last axis is NALIGN, any other ALIGN.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
input x '[2,256]'
op inner aten.slice.Tensor '[2,64]' x '{"dim": 1, "start": 64, "end": 128}'
op last aten.slice.Tensor '[2,64]' x '{"dim": -1, "start": -64, "end": 9223372036854775807}'
op first aten.slice.Tensor '[2,64]' x '{"dim": 1, "start": 0, "end": 64}'
op ragged aten.slice.Tensor '[2,63]' x '{"dim": 1, "start": 64, "end": 127}'
op rows aten.slice.Tensor '[1,256]' x '{"dim": 0, "start": 1, "end": 2}'
finish >doc.json
both
sed -n '/"layout": {/,/"conversions"/p' out.json | grep -o '"name":"[a-z]*","mode":"[A-Z]*","allowed":"[A-Z]*","rule":"[a-z]*"'
