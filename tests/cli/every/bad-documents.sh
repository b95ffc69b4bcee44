# SPDX-License-Identifier: Apache-2.0
# Every malformed document is refused with a message that names file and place, the same by each program. npu-compile and
# npu-profile read documents as npu-run does.
. "$CASES/lib.sh"
bad_documents() {
  options=
  [ "$1" = npu-run ] && options="--random-inputs 0 --random-weights 0"
  # shellcheck disable=SC2086 # words
  refuse_all "$TESTDATA/bad/document/" "$TESTDATA"/bad/document/*.json -- "$1" {} $options
}
alike "bad documents" bad_documents npu-tag npu-fuse npu-partition npu-align npu-run
