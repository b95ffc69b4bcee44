# SPDX-License-Identifier: Apache-2.0
# What is added: fusion_group of every node and npu.fusion. A document without tags has no device.
npu-fuse "$TESTDATA/models/small/residual.json" | sed -n '/"fusion": /,$p'
echo "tagged:"
npu-tag --force 'cpu=aten.relu_.default' "$TESTDATA/models/small/residual.json" | npu-fuse | sed -n '/"fusion": /,$p'
