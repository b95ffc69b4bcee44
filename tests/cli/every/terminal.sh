# SPDX-License-Identifier: Apache-2.0
# Without GRAPH and with a terminal as stdin the program says so instead of waiting. script(1) makes the terminal.
# npu-profile and npu-plan do not wait for stdin.
. "$CASES/lib.sh"
command -v script >/dev/null || { echo "skipped: no script(1) (Debian package bsdutils)"; exit 77; }
terminal() {
  script -qec "$1" /dev/null </dev/null >messages
  status=$?
  tr -d '\r' <messages
  echo "exit $status"
}
alike "terminal" terminal $graph_programs
