#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Turns what `npu-tag --target opencl --list-ops` prints into the list of npu-opencl(7): the ops of device gpu by the dtypes
# that it takes them in. Reads stdin, writes stdout.
set -eu
awk '
  /^gpu / {
    split($0, field, /  +/)
    dtypes = field[3]
    gsub(/,/, ", ", dtypes)
    if (!(dtypes in ops)) order[++count] = dtypes
    name = field[2]
    sub(/\.default$/, "", name)
    if (index(ops[dtypes] ",", " " name ",") == 0) ops[dtypes] = ops[dtypes] (ops[dtypes] == "" ? " " : ", ") name
  }
  END {
    for (i = 1; i <= count; ++i) {
      print ".It " order[i]
      words = split(substr(ops[order[i]], 2), word, " ")
      line = ""
      for (w = 1; w <= words; ++w) {
        if (length(line) + length(word[w]) > 120) {
          print line
          line = ""
        }
        line = line (line == "" ? "" : " ") word[w]
      }
      print line
    }
  }'
