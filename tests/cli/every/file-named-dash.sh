# SPDX-License-Identifier: Apache-2.0
# ./- and -- name files; - is stdin and stdout. The others name their files in options.
. "$CASES/lib.sh"
npu-tag "$TESTDATA/models/small/empty.json" >model.json
cp model.json ./--help
dash() {
  cp model.json ./-
  options=--quiet
  filter="cat"
  # A report has times.
  [ "$1" = npu-run ] && options="--quiet --random-inputs 0" filter="sed 5q"
  # shellcheck disable=SC2086 # words
  {
    "$1" $options model.json | $filter >expected
    "$1" $options ./- | $filter | cmp expected - && echo "./-"
    "$1" $options -- ./- | $filter | cmp expected - && echo "-- ./-"
    "$1" $options -- --help | $filter | cmp expected - && echo "-- --help"
    "$1" $options - <./- | $filter | cmp expected - && echo "-"
    [ "$1" = npu-run ] && return
    "$1" $options - -o - <./- | cmp expected - && echo "-o -"
    "$1" $options ./- -o ./-
    cmp expected ./- && echo "-o ./-"
  }
}
alike "file named -" dash $graph_programs
