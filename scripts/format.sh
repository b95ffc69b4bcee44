#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats every C++ and C file of the repository in place; with --check it lists those that differ and fails.
#
# Usage: scripts/format.sh [--check] [FILE...]
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
clang_format=${CLANG_FORMAT:-clang-format}
command -v "$clang_format" >/dev/null || {
  echo "format.sh: $clang_format not found; on Debian: apt-get install clang-format, or set CLANG_FORMAT" >&2
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
  mapfile -t files < <(find libcore tools tests -regextype egrep -regex '.*\.(cpp|hpp|h|c)' | sort)
fi
if [[ $check -eq 0 ]]; then
  exec "$clang_format" -i "${files[@]}"
fi
status=0
for file in "${files[@]}"; do
  "$clang_format" "$file" | cmp -s - "$file" || {
    echo "$file"
    status=1
  }
done
[[ $status -eq 0 ]] || echo "format.sh: the files above are not formatted; run scripts/format.sh" >&2
exit $status
