#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Static checks: clang-tidy 14 with the checks of .clang-tidy for C++, shellcheck for shell, pyflakes for Python.
#
# Usage: scripts/lint.sh               everything; clang-tidy alone takes 11 to 39 CPU seconds a file
#        scripts/lint.sh FILE...       these files
#        scripts/lint.sh --recent N    the N sources of C++ that changed last, by the log, and all of shell and Python
#        scripts/lint.sh --since COMMIT   those that changed since a commit, and all of shell and Python
#        scripts/lint.sh --scripts     all of shell and Python
#
# C++ is read through the compile commands of build-lint/, which is configured here but not built: the release tree has
# none for single files, whose folders it compiles as one. $BUILD_DIR names another tree.
# All of libcore, the onednn backend and the tools is checked. The aten backend is not: clang 14 cannot read the headers
# of libtorch 1.13 as C++20.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${BUILD_DIR:-build-lint}
clang_tidy=${CLANG_TIDY:-$(command -v clang-tidy-14 || echo clang-tidy)}

# need PROGRAM PACKAGE
need() {
  command -v "$1" >/dev/null || {
    echo "lint.sh: $1 not found; on Debian: apt-get install $2, or scripts/quickstart.sh --packages-only --ci" >&2
    exit 1
  }
}

# The C++ files that can be checked, one per line.
checkable() {
  sed -n 's/^ *"file": "\(.*\.cpp\)",\{0,1\}$/\1/p' "$build/compile_commands.json" |
    sed -n "s|^$PWD/||p" | grep -E '^(libcore|tools)/' | grep -v /backends/aten/ | sort -u
}

need_compile_commands() {
  if [[ -z ${BUILD_DIR:-} ]]; then
    cmake --preset release -B "$build" -DNPU_UNITY=OFF >/dev/null || exit
  fi
  [[ -f $build/compile_commands.json ]] || {
    echo "lint.sh: $build/compile_commands.json not found; run cmake --preset dev first, or unset BUILD_DIR" >&2
    exit 1
  }
}

mapfile -t shell < <(git ls-files '*.sh' '*.bash' .ci/run)
mapfile -t python < <(git ls-files '*.py')
cpp=()
case ${1:-} in
  -h | --help)
    sed -n '3,14s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  "")
    need_compile_commands
    mapfile -t cpp < <(checkable)
    ;;
  --scripts) ;;
  --recent)
    need_compile_commands
    mapfile -t cpp < <(git log --name-only --diff-filter=d --format= -n 200 -- '*.cpp' | awk '!seen[$0]++' |
      grep -F -x -f <(checkable) | head -n "${2:?--recent needs a number}")
    ;;
  --since)
    need_compile_commands
    mapfile -t cpp < <(git diff --name-only --diff-filter=d "${2:?--since needs a commit}" -- '*.cpp' | grep -F -x -f <(checkable))
    ;;
  *)
    shell=() python=()
    for file; do
      case $file in
        *.cpp) cpp+=("$file") ;;
        *.sh | *.bash | .ci/run) shell+=("$file") ;;
        *.py) python+=("$file") ;;
        *)
          echo "lint.sh: $file: expected a .cpp, .sh, .bash or .py file" >&2
          exit 2
          ;;
      esac
    done
    ;;
esac

status=0
if [[ ${#shell[@]} -gt 0 ]]; then
  need shellcheck shellcheck
  # Cases of tests/cli have no first line with an interpreter: run_case.sh runs them with sh, beside lib.sh, and sets
  # their variables, which shellcheck does not see (SC1091, SC2154). stderr goes to a pipe on purpose (SC2069), and
  # words are split on purpose, so only warnings count there.
  for file in "${shell[@]}"; do
    case $file in
      tests/cli/*) shellcheck --shell=sh --severity=warning --exclude=SC1091,SC2154,SC2069,SC2010,SC2012 "$file" || status=1 ;;
      *) shellcheck "$file" || status=1 ;;
    esac
  done
fi
if [[ ${#python[@]} -gt 0 ]]; then
  need pyflakes3 pyflakes3
  pyflakes3 "${python[@]}" || status=1
fi
if [[ ${#cpp[@]} -gt 0 ]]; then
  need_compile_commands
  need "$clang_tidy" clang-tidy-14
  # clang cannot read g++'s precompiled header, so this uses a copy of the compile commands without it.
  commands=$(mktemp -d)
  trap 'rm -rf "$commands"' EXIT
  sed 's| -Winvalid-pch||; s| -include [^ ]*/cmake_pch\.hxx||; s| -fpch-preprocess||' "$build/compile_commands.json" \
    >"$commands/compile_commands.json"
  # clang does not know some of g++'s warning flags.
  printf '%s\0' "${cpp[@]}" |
    xargs -0 -n 1 -P "$(nproc)" "$clang_tidy" -p "$commands" --quiet --warnings-as-errors='*' \
      --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-ignored-optimization-argument || status=1
fi
exit "$status"
