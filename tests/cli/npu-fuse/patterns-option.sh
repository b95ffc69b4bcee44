# SPDX-License-Identifier: Apache-2.0
# Lists, several options, a list that only removes patterns; the order does not matter.
model=$TESTDATA/models/mobilenet_v2.json
npu-fuse "$model" >default.json
npu-fuse --patterns default "$model" | cmp - default.json
npu-fuse -p default,-horizontal "$model" >less.json
npu-fuse --patterns=-horizontal "$model" | cmp - less.json
npu-fuse -p default -p -horizontal "$model" | cmp - less.json
npu-fuse -p residual,conv-bn-act "$model" >two.json
npu-fuse -p conv-bn-act,residual "$model" | cmp - two.json
npu-fuse -p none "$model" --assert 'groups==153' --assert 'traffic_bytes==158909088' -o none.json
