# SPDX-License-Identifier: Apache-2.0
# device and device_reason of every node, with the built-in target.
. "$CASES/lib.sh"
npu-tag "$CASES/npu-tag/reasons.json" | placement
echo "small/dtypes:"
npu-tag "$TESTDATA/models/small/dtypes.json" | placement
echo "small/multi_output:"
npu-tag "$TESTDATA/models/small/multi_output.json" | placement
echo "small/conv_kinds, pytorch-apple:"
npu-tag --target pytorch-apple "$TESTDATA/models/small/conv_kinds.json" | placement
