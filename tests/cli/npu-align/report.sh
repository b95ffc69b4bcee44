# SPDX-License-Identifier: Apache-2.0
# --report and --explain go to stderr; the document is the same.
npu-align --report --explain "$TESTDATA/models/small/inception.json" >with.json
npu-align "$TESTDATA/models/small/inception.json" | cmp with.json -
