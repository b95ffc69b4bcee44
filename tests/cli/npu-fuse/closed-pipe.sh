# SPDX-License-Identifier: Apache-2.0
# A reader that goes away ends the program without a message: by SIGPIPE (128 + 13), or, where the
# caller ignores that signal, with exit 0.
. "$CASES/lib.sh"
model=$TESTDATA/models/inception_v3.json  # more than a pipe holds
echo "default:"
into_closed_pipe npu-fuse "$model"
echo "SIGPIPE ignored:"
trap '' PIPE
into_closed_pipe npu-fuse "$model"
into_closed_pipe npu-fuse --help
