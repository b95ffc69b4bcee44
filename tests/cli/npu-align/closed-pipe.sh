# SPDX-License-Identifier: Apache-2.0
# As for npu-tag: SIGPIPE (128 + 13) by default; exit 0 and silence where it is ignored.
. "$CASES/lib.sh"
echo "default:"
into_closed_pipe npu-align "$TESTDATA/models/inception_v3.json"
echo "SIGPIPE ignored:"
trap '' PIPE
into_closed_pipe npu-align "$TESTDATA/models/inception_v3.json"
