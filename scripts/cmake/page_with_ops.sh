#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a manual page with a list of ops behind its comment `.\" npu-tag OPTIONS`: what that command prints.
# Of a frontend, each op with its first opset and what it becomes; of a target, the ops of device gpu by their dtypes.
#
# Usage: page_with_ops.sh NPU-TAG PAGE OUTPUT
set -eu
comment='^\.\\" npu-tag '
# shellcheck disable=SC2046 # the options
ops=$("$1" $(sed -n "s/$comment//p" "$2"))
{
  sed "/$comment/q" "$2"
  printf '%s\n' "$ops" | awk '
    BEGIN { print ".Bl -tag -width Ds -compact" }
    /^{"/ {
      split($0, part, "\"")
      at = part[2] == "domain" ? 4 : 0
      gsub(/[:,]/, "", part[at + 7])
      print ".It " (at ? part[4] "." : "") part[at + 4] " , " part[at + 7]
      print (part[at + 8] == "refused" ? "refused: " : "") part[at + 10]
    }
    /^gpu / {
      split($0, column, /  +/)
      sub(/[.]default$/, "", column[2])
      gsub(/,/, ", ", column[3])
      if (!(column[3] in types)) order[++count] = column[3]
      if (index(types[column[3]] ",", " " column[2] ",") == 0)
        types[column[3]] = types[column[3]] (types[column[3]] == "" ? " " : ", ") column[2]
    }
    END {
      for (i = 1; i <= count; ++i) print ".It " order[i] "\n" substr(types[order[i]], 2)
      print ".El"
    }'
  sed "1,/$comment/d" "$2"
} >"$3"
