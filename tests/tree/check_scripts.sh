#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that every script can be reached: that a page of man/, a test or CONTRIBUTING.md names it, or a script that can
# be reached; those that only name each other are not. And that the top of scripts/ has at most 20 entries.
#
# A file is named by its name; a program of C++ also by that of its target, a module of Python by an import, or by a
# string in its own folder. CMakeLists.txt names all that it builds and so leads to nothing; scripts/cmake/ is CMake's.
#
# Usage: check_scripts.sh SOURCE-DIR   exits 1 with a line for each that cannot be reached, or for the top
set -eu
LC_ALL=C
export LC_ALL
cd "$1"
most=20 failed=0

count=$(find scripts/* -prune ! -name __pycache__ | wc -l)
[ "$count" -le $most ] || {
  echo "scripts/ has $count entries, expected at most $most; what a user or a new developer does not call stands in a folder" >&2
  failed=1
}

scripts=$(find scripts -type f ! -path 'scripts/cmake/*' ! -path '*/__pycache__/*' ! -name CMakeLists.txt ! -name __init__.py |
  sort)
# The list of installed files has all of export/, and this folder's own checks say what they plant.
# shellcheck disable=SC2086 # a list of files without blanks
find CONTRIBUTING.md man tests -type f ! -path 'tests/tree/*' ! -name installed_files.txt ! -path '*/__pycache__/*' \
  -exec cat {} + | awk -v list="$scripts" '
  BEGIN {
    count = split(list, paths, "\n")
    for (i = 1; i <= count; ++i) {
      name = paths[i]
      sub(/.*\//, "", name)
      owners[name] = owners[name] " " paths[i]
      stem = name
      if (sub(/[.]cpp$/, "", stem)) owners[stem] = owners[stem] " " paths[i]
      if (sub(/[.]py$/, "", stem)) modules[stem] = modules[stem] " " paths[i]
    }
  }

  function folder(path) {
    sub(/[^\/]*$/, "", path)
    return path
  }

  # Adds what a line of the file names, "-" for pages and tests.
  function read(file, line,    words, i, n, found, string) {
    n = split(line, words, /[^A-Za-z0-9_.]+/)
    for (i = 1; i <= n; ++i) {
      sub(/[.]+$/, "", words[i])
      if (words[i] in owners) names[file] = names[file] owners[words[i]]
    }
    if (file !~ /[.]py$/) return
    if (line ~ /^ *(from|import) /) {
      n = split(line, words, /[^A-Za-z0-9_]+/)
      for (i = 1; i <= n; ++i) if (words[i] in modules) names[file] = names[file] modules[words[i]]
    }
    while (match(line, /"[a-z_0-9]+"/)) {
      string = substr(line, RSTART + 1, RLENGTH - 2)
      line = substr(line, RSTART + RLENGTH)
      found = folder(file) string ".py"
      if (string in modules && index(modules[string] " ", " " found " ")) names[file] = names[file] " " found
    }
  }

  { read("-", $0) }
  END {
    for (i = 1; i <= count; ++i) {
      while ((getline line < paths[i]) > 0) read(paths[i], line)
      close(paths[i])
    }
    queue[last = 1] = "-"
    for (next_one = 1; next_one <= last; ++next_one) {
      n = split(names[queue[next_one]], found, " ")
      for (i = 1; i <= n; ++i) {
        if (found[i] in reached) continue
        reached[found[i]] = 1
        queue[++last] = found[i]
      }
    }
    for (i = 1; i <= count; ++i) {
      if (paths[i] in reached) continue
      print paths[i] ": no page of man/, no test and no line of CONTRIBUTING.md leads to it"
      failed = 1
    }
    if (count < 20) {
      print "only " count " scripts were found"
      failed = 1
    }
    exit failed
  }' >&2 || failed=1
exit $failed
