#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Counts the instructions of npu-tag, npu-fuse, npu-partition and npu-align on documents of n, 2n and 4n of something, for
# several things that there can be many of. What 2n to 4n adds must be about twice what n to 2n adds: 2 if time is linear,
# 4 if it is quadratic. Instructions, not seconds: they do not depend on what else the machine does.
#
# Usage: run_scaling.sh BIN-DIR    exits 77 without valgrind
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$1
command -v valgrind >/dev/null || {
  echo "valgrind is not here: nothing counts instructions"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# The instructions of a command.
instructions() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>"$folder/log" || {
    cat "$folder/log" >&2
    exit 1
  }
  sed -n 's/.*Collected : *\([0-9]*\).*/\1/p' "$folder/log"
}

check() {
  awk -v what="$1" -v a="$2" -v b="$3" -v c="$4" 'BEGIN {
    growth = (c - b) / (b - a)
    failed = (growth > 2.5)
    printf("%-22s %12d %12d %12d   growth %.2f%s\n", what, a, b, c, growth, failed ? ", expected 2" : "")
    exit failed
  }' || failed=1
}

n=500
for shape in cat inputs fan alternate norms; do
  for factor in 1 2 4; do
    awk -v shape=$shape -v n=$((n * factor)) -f "$here/scaling_documents.awk" >"$folder/model$factor"
  done
  for tool in tag fuse partition align; do
    counts=
    for factor in 1 2 4; do
      counts="$counts $(instructions "$bin/npu-$tool" -q "$folder/model$factor" -o "$folder/next$factor")"
      mv "$folder/next$factor" "$folder/model$factor"
    done
    # shellcheck disable=SC2086 # three numbers
    check "$shape npu-$tool" $counts
  done
done
exit $failed
