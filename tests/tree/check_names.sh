#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that no two files of a folder have the same name in their anonymous namespaces, or the same macro: a Release
# build compiles the files of a folder together (NPU_UNITY), where the second would be a redefinition. Functions may
# share a name if their parameters have other types. Files with their own compile options are compiled separately.
#
# File names consist of letters, digits and . _ + - only: others are slips of a shell or awk script.
#
# Reads text, not C++: in clang-format's layout such a name is on a line that is not indented.
#
# Usage: check_names.sh SOURCE-DIR   exits 1 with a line for each name that is there twice, or odd
set -eu
LC_ALL=C
export LC_ALL
cd "$1"

odd=$(find . -path './.git' -prune -o -path './build*' -prune -o -name '*[!A-Za-z0-9._+-]*' ! -path '*/__pycache__*' -print)
if [ -n "$odd" ]; then
  printf '%s: the name of a file consists of letters, digits and . _ + -\n' "$odd"
  exit 1
fi

files=$(find libcore/src libcore/backends libcore/frontends tools/common tests/unit -name '*.cpp' ! -name '*custom_ops.cpp' \
  ! -path '*/onednn/kernels/*' | sort)
# shellcheck disable=SC2086 # a list of files without blanks
exec awk '
  # For each parameter, what comes before its name.
  function types(list,    count, parts, i, depth, c, text, result) {
    sub(/\)[^)]*$/, "", list)
    for (i = 1; i <= length(list); ++i) {
      c = substr(list, i, 1)
      if (c ~ /[<(]/) ++depth
      if (c ~ /[>)]/) --depth
      text = text (c == "," && !depth ? "\n" : c)
    }
    count = split(text, parts, "\n")
    for (i = 1; i <= count; ++i) {
      sub(/ = .*/, "", parts[i])
      sub(/ *[A-Za-z_0-9]+ *$/, "", parts[i])
      gsub(/ /, "", parts[i])
      result = result "," parts[i]
    }
    return result
  }

  function add(name, kind,    key) {
    ++names
    key = folder " " name kind
    if (key in first && first[key] != FILENAME) {
      print FILENAME ": " name " is also in " first[key] ", which a Release build compiles with it"
      failed = 1
    } else first[key] = FILENAME
  }

  FNR == 1 {
    folder = FILENAME
    sub(/\/[^\/]*$/, "", folder)
    anonymous = 0
    head = ""
  }
  /^#define / {
    sub(/\(.*/, "", $2)
    add($2, "")
  }
  /^namespace {/ { anonymous = 1 }
  /^}  \/\/ namespace$/ { anonymous = 0 }
  !anonymous || /^namespace {/ { next }
  head != "" {
    head = head $0
  }
  head == "" {
    if ($0 !~ /^[A-Za-z\[]/ || /^(template|namespace|extern|using namespace)/) next
    head = $0
  }
  {
    # A declaration ends with "{" or ";"; a list of parameters may span lines.
    if (head !~ /[{};]/) next
    text = head
    head = ""
    if (match(text, /^(struct|class|enum class|enum|union) [A-Za-z_0-9]+/)) {
      name = substr(text, RSTART, RLENGTH)
      sub(/.* /, "", name)
      if (text ~ /{/) add(name, "")
    } else if (match(text, /^using [A-Za-z_0-9]+ =/)) {
      split(text, words, " ")
      add(words[2], " " text)
      if ((folder " alias " words[2]) in alias && alias[folder " alias " words[2]] != text) {
        print FILENAME ": " words[2] " is another alias in its folder, whose files a Release build compiles together"
        failed = 1
      }
      alias[folder " alias " words[2]] = text
    } else if (match(text, /[A-Za-z_0-9]+\(/) && text !~ /^[^(]* = / && text !~ /^[^(]*{/ &&
               text !~ /^(TEST_CASE|NPU_|static_assert)/) {
      name = substr(text, RSTART, RLENGTH - 1)
      rest = substr(text, RSTART + RLENGTH)
      sub(/\{.*/, "", rest)
      if (text ~ /{/ && substr(text, RSTART - 1, 1) != ":") add(name, "(" types(rest) ")")
    } else if (text ~ /^(constexpr|const|inline|static|thread_local) /) {
      sub(/(\[| =|[{=;]).*/, "", text)
      sub(/.*[ *&]/, "", text)
      add(text, "")
    }
  }
  END {
    if (names < 500) {
      print "only " names + 0 " names were found"
      failed = 1
    }
    exit failed
  }' $files
