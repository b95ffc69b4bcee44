# SPDX-License-Identifier: Apache-2.0
# A reader that goes away ends the program without a message: by SIGPIPE (128 + 13), or, where the
# caller ignores that signal, with exit 0.
. "$CASES/lib.sh"
document_inputs "$TESTDATA/models/inception_v3.json"  # more than a pipe holds
closed_pipe() {
  echo "default:"
  into_closed_pipe document "$1"
  echo "SIGPIPE ignored:"
  trap '' PIPE
  into_closed_pipe document "$1"
  into_closed_pipe "$1" --help
}
alike "closed pipe" closed_pipe $programs
