# SPDX-License-Identifier: Apache-2.0
npu-align --assert 'conversions<=9' "$TESTDATA/models/small/residual.json" | grep -c 'npu.channel_norm'
