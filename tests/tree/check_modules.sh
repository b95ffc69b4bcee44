#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that a file includes only what its module may: those above it in the list of section Modules of
# npu-internals(7), where names with a slash are folders inside a module.
# Reads every #include "..." of libcore and tools; files are read as text, so a branch of #if counts, too.
#
# Usage: check_modules.sh SOURCE-DIR
# Exits 1 with a line for each include that leads downwards, for each folder that is not in the list, and for each name
# in the list that is not a folder.
set -eu
LC_ALL=C
export LC_ALL
cd "$1"

list=$(sed -n '/^\.Ss Modules/,/^\.El/s/^\.It //p' man/npu-internals.7)
files=$(find libcore/src libcore/include libcore/backends libcore/frontends tools -name '*.[ch]pp' -o -name '*.h' | sort)
# shellcheck disable=SC2086 # a list of files without blanks
exec awk -v list="$list" '
  BEGIN {
    count = split(list, names, "\n")
    for (i = 1; i <= count; ++i) rank[names[i]] = i
    for (i = 1; i < ARGC; ++i) {
      known[ARGV[i]] = 1
      # Where a public header of a module with folders belongs: beside the source of its name.
      n = split(ARGV[i], part, "/")
      if (part[2] == "src" && n == 5 && part[5] ~ /[.]cpp$/) {
        sub(/[.]cpp$/, "", part[5])
        home[part[3] "/" part[5]] = part[3] "/" part[4]
      }
    }
  }

  # The longest name of the list that a path of folders begins with.
  function listed(folders) {
    while (!(folders in rank) && folders ~ "/") sub("/[^/]*$", "", folders)
    return folders
  }

  # The module of a file of the repository.
  function module(path,    stem, top) {
    if (path ~ "^tools/") return "tools"
    if (path ~ "^libcore/(backends|frontends)/") {
      sub("^libcore/", "", path)
      sub("/[^/]*$", "", path)
      return listed(path)
    }
    if (path ~ "^libcore/src/") {
      sub("^libcore/src/", "", path)
      sub("/[^/]*$", "", path)
      return listed(path)
    }
    sub("^libcore/include/npu/", "", path)
    # backend.h and custom_op.hpp are contracts with others and stand alone.
    if (path !~ "/") return "support"
    stem = path
    sub("[.]h(pp)?$", "", stem)
    top = path
    sub("/.*", "", top)
    if (stem in home && listed(home[stem]) != top) return listed(home[stem])
    return listed(top)
  }

  # The file that an include refers to, "" if it is not in the repository.
  function resolve(name,    folder) {
    folder = FILENAME
    sub("/[^/]*$", "", folder)
    if (folder "/" name in known) return folder "/" name
    if ("libcore/include/" name in known) return "libcore/include/" name
    if ("libcore/src/" name in known) return "libcore/src/" name
    if ("libcore/backends/" name in known) return "libcore/backends/" name
    # Folders of one backend or frontend, which others have, too.
    if (match(FILENAME, "^libcore/(backends|frontends)/[^/]*/") &&
        substr(FILENAME, 1, RLENGTH) name in known) return substr(FILENAME, 1, RLENGTH) name
    if ("tools/common/" name in known) return "tools/common/" name
    return ""
  }

  FNR == 1 {
    own = module(FILENAME)
    used[own] = 1
    if (!(own in rank)) {
      print FILENAME ": its module \"" own "\" is not in the list of npu-internals(7)"
      failed = 1
    }
  }
  /^ *# *include "/ {
    split($0, quoted, "\"")
    target = resolve(quoted[2])
    if (target == "") next
    other = module(target)
    if (other in rank && rank[other] > rank[own]) {
      print FILENAME ":" FNR ": module " own " includes \"" quoted[2] "\" of " other ", which stands below it"
      failed = 1
    }
    ++arrows
  }
  END {
    for (i = 1; i <= count; ++i) {
      if (!(names[i] in used)) {
        print "npu-internals(7): the list names \"" names[i] "\", but no file belongs to it"
        failed = 1
      }
    }
    if (arrows == 0) {
      print "no include was found at all"
      failed = 1
    }
    exit failed
  }' $files >&2
