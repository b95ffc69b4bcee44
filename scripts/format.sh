#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats every C++ and C file of the repository in place; with --check it lists those that differ and fails.
# Needs clang-format 14, since another version formats differently.
#
# Usage: scripts/format.sh [--check] [FILE...]
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
clang_format=${CLANG_FORMAT:-$(command -v clang-format-14 || echo clang-format)}
command -v "$clang_format" >/dev/null || {
  echo "format.sh: $clang_format not found; on Debian: apt-get install clang-format-14, or set CLANG_FORMAT" >&2
  exit 1
}
version=$("$clang_format" --version)
[[ $version == *" version 14."* ]] || {
  echo "format.sh: expected clang-format 14, but $clang_format is: $version" >&2
  exit 1
}

check=0
if [[ ${1:-} == --check ]]; then
  check=1
  shift
fi
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  cd "$root"
  mapfile -t files < <(find libcore tools tests scripts -regextype egrep -regex '.*\.(cpp|hpp|h|c)' | sort)
fi
if [[ $check -eq 0 ]]; then
  exec "$clang_format" -i "${files[@]}"
fi
found=$(printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 16 "$clang_format" --dry-run --ferror-limit=1 2>&1)
if [[ -n $found ]]; then
  sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: .*clang-format-violations.*/\1/p' <<<"$found" | sort -u
  echo "format.sh: the files above are not formatted; run scripts/format.sh" >&2
  exit 1
fi
