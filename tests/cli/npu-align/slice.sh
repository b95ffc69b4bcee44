# SPDX-License-Identifier: Apache-2.0
# A slice that begins behind 0 and ends at a multiple of 64 of the channels, axis 1, is NALIGN, any other ALIGN.
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
# The channels of images: W is the last axis.
begin
input x '[1,256,8,8]'
weight w '[256,256,1,1]'
weight v '[64,64,1,1]'
op c aten.conv2d.default '[1,256,8,8]' 'x w'
op width aten.slice.Tensor '[1,256,8,4]' c '{"dim": 3, "start": 4, "end": 8}'
op d aten.conv2d.default '[1,256,8,4]' 'width w'
op channels aten.slice.Tensor '[1,64,8,8]' c '{"dim": 1, "start": 64, "end": 128}'
op e aten.conv2d.default '[1,64,8,8]' 'channels v'
output d
output e
finish >doc.json
both
