#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What takes too long for every change: run it before a release and before a larger piece of work ends. scripts/test.sh
# is what anybody runs. Each gate counts as one test in the last line; how long each took stands above it.
#
# Usage: scripts/gates.sh            the gates that need no more than what quickstart.sh --packages-only --ci installs
#        scripts/gates.sh GATE...    these
#        scripts/gates.sh --list     all of them, a line each
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# By name only: "tidy" takes hours, "arm64" emulates a CPU and fetches a cross compiler's libraries.
gates=(clang threads fuzz levels)
named=(tidy arm64)

about() {
  case $1 in
    clang) echo "the unit tests of libcore, compiled by clang: other warnings, another standard library's macros" ;;
    threads) echo "ThreadSanitizer over what starts threads" ;;
    fuzz) echo "every fuzzer for a fixed number of runs" ;;
    levels) echo "the tests of the backend onednn at every level of instructions that this CPU has" ;;
    tidy) echo "clang-tidy, shellcheck and pyflakes over everything; by name only" ;;
    arm64) echo "scripts/check/arm64.sh: unit tests and models on an emulated 64-bit ARM; by name only" ;;
  esac
}

gate_clang() {
  cmake --preset clang &&
    cmake --build --preset clang --parallel "$(nproc)" --target npu_unit_tests &&
    ctest --preset clang --parallel "$(nproc)" --no-tests=error --label-regex '^unit$'
}

# With a backend that uses neither OpenMP nor libtorch.
gate_threads() {
  cmake --preset tsan &&
    cmake --build --preset tsan --parallel "$(nproc)" --target thread_tests &&
    ctest --preset tsan --no-tests=error --label-regex '^threads$'
}

# From a fixed seed. All passes over one document, for every target and strategy, take seconds under sanitizers, hence
# fewer runs. The fuzzer of stored plans loads the backend from build/.
gate_fuzz() {
  local names
  cmake --preset release >/dev/null &&
    cmake --build --preset release --parallel "$(nproc)" --target programs || return
  mapfile -t names < <(scripts/check/fuzz.sh --list | cut -d ' ' -f 1 | grep -v -x passes)
  [[ ${#names[@]} -gt 0 ]] && scripts/check/fuzz.sh --runs 2000 "${names[@]}" && scripts/check/fuzz.sh --runs 150 passes
}

gate_levels() {
  cmake --preset release &&
    cmake --build --preset release --parallel "$(nproc)" &&
    ctest --preset release --parallel "$(nproc)" --no-tests=error --label-regex '^levels$'
}

gate_tidy() { scripts/lint.sh; }

gate_arm64() { scripts/check/arm64.sh; }

case ${1:-} in
  "") ;;
  -h | --help)
    sed -n '3,8s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  --list)
    for name in "${gates[@]}" "${named[@]}"; do printf '%-8s %s\n' "$name" "$(about "$name")"; done
    exit 0
    ;;
  *)
    for name; do
      [[ -n $(about "$name") ]] || {
        echo "gates.sh: '$name' is no gate; scripts/gates.sh --list names them" >&2
        exit 2
      }
    done
    gates=("$@")
    ;;
esac

passed=0 failed=0 times=()
for name in "${gates[@]}"; do
  start=$SECONDS result=passed
  printf '\n==> Gate: %s\n' "$name"
  if "gate_$name"; then
    passed=$((passed + 1))
  else
    result=FAILED failed=$((failed + 1))
  fi
  times+=("$(printf '%-8s %6d s  %s' "$name" $((SECONDS - start)) "$result")")
done
printf '\n==> Time\n'
printf '%s\n' "${times[@]}"
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
