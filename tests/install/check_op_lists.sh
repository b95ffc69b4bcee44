#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the installed pages list the ops that the installed npu-tag lists, and no others: of ONNX each with its
# first opset and what becomes of it, of the target opencl each with its dtypes.
#
# Usage: check_op_lists.sh PREFIX SCRATCH-DIR   exits 1 with the difference
set -eu
prefix=$1 scratch=$2
LC_ALL=C
export LC_ALL

# The items of the list in page $1, each on a line with the text behind it: "item|text".
items() {
  sed '1,/^\.\\" npu-tag /d; /^\.El/,$d' "$prefix/share/man/man7/$1.7" | sed -n '/^\.It /{s///; N; s/\n/|/; p;}'
}

same() {
  [ -s "$scratch/$1.listed" ] || {
    echo "npu-tag lists no op for $1(7)" >&2
    exit 1
  }
  diff "$scratch/$1.listed" "$scratch/$1.page" >&2 || {
    echo "the list in the installed $1(7) is not that of npu-tag" >&2
    exit 1
  }
}

"$prefix/bin/npu-tag" --list-ops --frontend onnx | sed -n '
  s/"domain":"\([^"]*\)","op":"/"op":"\1./
  s/^{"op":"\([^"]*\)","since":\([0-9]*\),"becomes":"\([^"]*\)".*/\1 , \2|\3/p
  s/^{"op":"\([^"]*\)","since":\([0-9]*\),"refused":"\([^"]*\)".*/\1 , \2|refused: \3/p' >"$scratch/npu-onnx.listed"
items npu-onnx >"$scratch/npu-onnx.page"
same npu-onnx

"$prefix/bin/npu-tag" --target opencl --list-ops gpu | awk -F '  +' '
  NR > 1 { sub(/[.]default$/, "", $2); gsub(/,/, ", ", $3); print $2 "|" $3 }' | sort -u >"$scratch/npu-opencl.listed"
items npu-opencl | awk -F '|' '
  { count = split($2, op, ", "); for (i = 1; i <= count; ++i) print op[i] "|" $1 }' | sort >"$scratch/npu-opencl.page"
same npu-opencl
