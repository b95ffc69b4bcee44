# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
document_inputs "$TESTDATA/models/small/mlp.json"
# "command >/dev/full", with its status
full() {
  "$@" >/dev/full
  echo "exit $?"
}
stdout() { full document "$1"; }
help() { full "$1" --help; }
version() { full "$1" --version; }
output() { try document "$1" -o /dev/full | sed 1d; }
list() {
  case $1 in
    npu-tag) full npu-tag --print-target ;;
    npu-fuse) full npu-fuse --list-patterns ;;
  esac
}
picture() {
  option=--dot
  [ "$1" = npu-plan ] && option=--gantt
  try document "$1" $option /dev/full | sed 1d
}
alike "document" stdout $programs
alike "help" help $programs
alike "version" version $programs
alike "list" list npu-tag npu-fuse
# npu-run's document is a report, which has no -o.
alike "-o" output npu-tag npu-fuse npu-partition npu-align npu-compile npu-profile npu-plan
alike "picture" picture npu-partition npu-align npu-plan
