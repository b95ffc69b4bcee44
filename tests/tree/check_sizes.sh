#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that no function of libcore and tools is longer than 80 lines and no source longer than 600, unless the comment
# that opens the file says why in a sentence that begins with "Long because"; that headers have at most 250 lines, but for
# the two that vendors include alone and the one of vectors; that a program is below 100 lines; and that no folder has
# more than 25 sources.
#
# Reads text, not C++: in clang-format's layout a function has the indentation of its namespace or class and ends
# with a lone "}" there.
#
# Usage: check_sizes.sh SOURCE-DIR   exits 1 with a line for each that is too long or too full
set -eu
LC_ALL=C
export LC_ALL
cd "$1"

files=$(find libcore/src libcore/include libcore/backends libcore/frontends tools -name '*.[ch]pp' -o -name '*.h' | sort)
# shellcheck disable=SC2086 # a list of files without blanks
exec awk '
  function too_long(what, size, limit) {
    print file ": " what " has " size " lines, expected at most " limit
    failed = 1
  }

  function close_file() {
    if (file ~ "^(libcore/(src|backends|frontends)|tools)/" && lines > 600 && !excused) too_long("the file", lines, 600)
    if (file ~ "[.]h(pp)?$" && file !~ "/(backend[.]h|sub_ir[.]h|simd[.]hpp)$" && lines > 250) too_long("the header", lines, 250)
    if (file ~ "^tools/npu_" && lines > 99) too_long("the program", lines, 99)
  }

  function close_function(size,    name) {
    ++functions
    if (size <= 80 || excused) return
    name = head
    sub(/\(.*/, "", name)
    sub(/.*[ *&]/, "", name)
    too_long("function " name, size, 80)
  }

  FNR == 1 {
    close_file()
    file = FILENAME
    ++files
    if (file ~ "[.]cpp$") {
      folder = file
      sub("/[^/]*$", "", folder)
      ++sources[folder]
    }
    excused = scope = start = inside = raw = 0
    opening = 1
  }
  {
    lines = FNR
    if (opening && $0 !~ "^//") opening = 0
    if (opening && /Long because/) excused = 1
    # Raw strings hold other languages.
    if (raw) {
      if (index($0, ")" delimiter "\"")) raw = 0
      next
    }
    text = $0
    if (match(text, /R"[a-z]*\(/)) {
      delimiter = substr(text, RSTART + 2, RLENGTH - 3)
      rest = substr(text, RSTART + RLENGTH)
      if (!index(rest, ")" delimiter "\"")) raw = 1
    }
    match(text, /^ */)
    indent = RLENGTH
    if (inside) {
      if (indent == scope && text ~ /^ *}/) {
        if (inside == 1) close_function(FNR - start + 1)
        inside = start = 0
      }
      next
    }
    sub(" *//.*", "", text)
    if (text ~ /^ *$/ || text ~ /^ *[#*]/ || text ~ "^ */[*]" || text ~ /^ *(public|private|protected):$/) next
    if (text ~ /^ *template <.*>$/) next
    if (scope > 0 && indent == scope - 2 && text ~ /^ *}/) {
      scope -= 2
      start = 0
      next
    }
    if (text ~ /^}/) next  # of a namespace
    if (!start) {
      start = FNR
      head = ""
    }
    head = head text
    if (text ~ /;$/ || text ~ /}$/) start = 0
    else if (text ~ /{$/) {
      if (head ~ /^ *(inline )?namespace/ || head ~ /^ *extern "C" {/) start = 0
      else if (head ~ /^ *(typedef )?(class|struct|union|enum)/ && head !~ /[(]/) {
        scope += 2
        start = 0
      }
      else inside = head ~ /(=|=.*[(]) *{$/ ? 2 : 1
    }
  }
  END {
    close_file()
    for (folder in sources) {
      if (sources[folder] <= 25) continue
      print folder ": the folder has " sources[folder] " sources, expected at most 25"
      failed = 1
    }
    if (functions < 1000 || files < 100) {
      print "only " functions + 0 " functions in " files + 0 " files were found"
      failed = 1
    }
    exit failed
  }' $files
