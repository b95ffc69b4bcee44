# SPDX-License-Identifier: Apache-2.0
# Unknown patterns, and pattern files with faults: one message, nothing written.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/residual.json
try npu-fuse --patterns conv-bn-actt "$model"
try npu-fuse --patterns default,quantum "$model"
try npu-fuse --patterns '' "$model"
try npu-fuse --max-ops 0 "$model"
try npu-fuse --max-ops many "$model"
try npu-fuse --pattern-file missing.json "$model"
refuse_all "$TESTDATA/bad/patterns/" "$TESTDATA"/bad/patterns/*.json -- npu-fuse --pattern-file {} "$model"
