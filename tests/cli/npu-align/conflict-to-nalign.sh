# SPDX-License-Identifier: Apache-2.0
# An ALIGN op before an NALIGN one: direction true. The row-major form keeps the tensor's name.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
begin
weight k '[1,64,4,4]'
op pool aten.max_pool2d.default '[1,64,2,2]' k '{"kernel_size": [2, 2]}'
op rows aten.view.default '[1,64,4]' pool '{"size": [1, 64, 4]}'
output rows
output pool
finish >doc.json
both
grep -o '"graph_outputs": \|"name":"pool","shape":\[1,64,2,2\],"dtype":"float32"[^}]*}' out.json | sed -n 1,2p
