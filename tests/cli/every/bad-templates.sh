# SPDX-License-Identifier: Apache-2.0
# Every malformed template is refused with a message that names file and place, the same by each program.
. "$CASES/lib.sh"
bad_templates() {
  options=
  [ "$1" = npu-run ] && options="--random-inputs 0 --random-weights 0"
  # shellcheck disable=SC2086 # words
  refuse_all "$TESTDATA/bad/template/" "$TESTDATA"/bad/template/*.json -- "$1" --bind S=8 {} $options
}
alike "bad templates" bad_templates npu-tag npu-fuse npu-partition npu-align npu-run
