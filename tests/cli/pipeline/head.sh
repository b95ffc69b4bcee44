# SPDX-License-Identifier: Apache-2.0
# A reader that takes one line ends the pipe without a message.
npu-tag "$TESTDATA/models/inception_v3.json" | head -n 1
npu-tag "$TESTDATA/models/inception_v3.json" | npu-partition | head -n 2
npu-tag "$TESTDATA/models/inception_v3.json" | npu-partition | head -c 1
echo
npu-run "$TESTDATA/models/small/empty.json" --random-inputs 0 | head -n 2
