#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy with the checks of .clang-tidy over the files of a build tree's compile_commands.json.
#
# Usage: scripts/lint.sh [FILE...]      all files of the library, the backends and the tools by default
# The build tree is $BUILD_DIR, build/ by default; scripts/quickstart.sh makes it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
clang_tidy=${CLANG_TIDY:-clang-tidy}
build=${BUILD_DIR:-build}
command -v "$clang_tidy" >/dev/null || {
  echo "lint.sh: $clang_tidy not found; on Debian: apt-get install clang-tidy, or set CLANG_TIDY" >&2
  exit 1
}
[[ -f $build/compile_commands.json ]] || {
  echo "lint.sh: $build/compile_commands.json not found; run cmake --preset release first" >&2
  exit 1
}
# g++'s precompiled header means nothing to clang, so a copy of the compile commands goes without it.
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
sed 's| -Winvalid-pch||; s| -include [^ ]*/cmake_pch\.hxx||' "$build/compile_commands.json" \
  >"$commands/compile_commands.json"

files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  # Not the aten backend: clang 14 cannot read libtorch 1.13's headers as C++20.
  mapfile -t files < <(sed -n 's/^ *"file": "\(.*\.cpp\)",\{0,1\}$/\1/p' "$build/compile_commands.json" |
    grep -E "^$PWD/(libcore|tools)/" | grep -v /backends/aten/ | sort -u)
fi
# g++'s own warning flags are none of clang's.
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" "$clang_tidy" -p "$commands" --quiet --warnings-as-errors='*' \
    --extra-arg=-Wno-unknown-warning-option
