#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs one case and compares what it printed with its goldens.
#
#   run_case.sh CASE.sh BIN_DIR SOURCE_DIR
#
# The case runs under plain sh in its own scratch folder, with BIN_DIR first in PATH, stdin
# empty, LC_ALL=C and, beside it, the links testdata and cases (exported as TESTDATA and CASES), so
# that no message holds an absolute path. What it writes is compared with CASE.stdout, CASE.stderr
# and CASE.exit; a missing file means silence and 0. UPDATE_GOLDENS=1 rewrites them instead.
set -u

if [ $# -ne 3 ]; then
  echo "usage: run_case.sh CASE.sh BIN_DIR SOURCE_DIR" >&2
  exit 2
fi
case_script=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
bin_dir=$(cd "$2" && pwd) || exit 2
source_dir=$(cd "$3" && pwd) || exit 2
golden=${case_script%.sh}
if [ ! -f "$case_script" ]; then
  echo "run_case.sh: no such case: $case_script" >&2
  exit 2
fi

scratch=$(mktemp -d "${TMPDIR:-/tmp}/npu-cli.XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' HUP INT TERM
mkdir "$scratch/work"
ln -s "$source_dir/testdata" "$scratch/work/testdata"
ln -s "$source_dir/tests/cli" "$scratch/work/cases"

# A sanitizer's finding must not look like exit 1, and a failed allocation has to reach the program.
sanitizer=exitcode=99:allocator_may_return_null=1
(
  cd "$scratch/work" || exit 2
  unset NPU_BACKEND_PATH CDPATH ENV
  PATH=$bin_dir:$PATH
  LC_ALL=C
  # A separate cache, so that no case finds what another one, or the user, has compiled.
  XDG_CACHE_HOME=$scratch/cache
  TESTDATA=testdata
  CASES=cases
  ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}$sanitizer
  UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}print_stacktrace=1:exitcode=99
  export PATH LC_ALL XDG_CACHE_HOME TESTDATA CASES ASAN_OPTIONS UBSAN_OPTIONS
  umask 022
  exec sh -u "$case_script"
) </dev/null >"$scratch/stdout" 2>"$scratch/stderr"
status=$?
# A case that cannot run here says why, in a line that begins with "skipped: ", and exits 77, which ctest counts as
# skipped.
if [ "$status" -eq 77 ]; then
  cat "$scratch/stdout" "$scratch/stderr"
  exit 77
fi
if [ "$status" -eq 0 ]; then : >"$scratch/exit"; else echo "$status" >"$scratch/exit"; fi

failed=0
for part in stdout stderr exit; do
  if [ "${UPDATE_GOLDENS:-}" = 1 ]; then
    if [ -s "$scratch/$part" ]; then
      cmp -s "$scratch/$part" "$golden.$part" || cp "$scratch/$part" "$golden.$part"
    else
      rm -f "$golden.$part"
    fi
    continue
  fi
  expected=$golden.$part
  [ -f "$expected" ] || expected=/dev/null
  if ! cmp -s "$expected" "$scratch/$part"; then
    failed=1
    echo "--- $part differs from $golden.$part (- expected, + found) ---"
    diff -u -F "^== " "$expected" "$scratch/$part" | sed '1,2d' | head -n 200
  fi
done
if [ "$failed" -ne 0 ]; then
  echo "$case_script failed; after a wanted change: UPDATE_GOLDENS=1 ctest -L cli, then review the diff"
fi
exit "$failed"
