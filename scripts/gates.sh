#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What takes too long for every change: run it before a release and before a larger piece of work ends. scripts/test.sh
# is what anybody runs. Each gate counts as one test in the last line; how long each took stands above it.
#
# Usage: scripts/gates.sh [--since COMMIT]            all gates but those by name; they need what
#                                                     quickstart.sh --packages-only --ci installs
#        scripts/gates.sh [--since COMMIT] GATE...    these
#        scripts/gates.sh --list                      all of them, a line each
# --since: what clang-tidy reads in the gate lint, the sources that changed since COMMIT; else the 6 that changed last.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# The tests with a label of the same name; tests/tree/check_tiers.sh reads this line.
labels=(levels scaling packages python torture)
# By name only: "tidy" takes hours, "arm64" emulates a CPU and fetches a cross compiler's libraries.
gates=(lint clang threads fuzz "${labels[@]}")
named=(tidy arm64)
since=

about() {
  case $1 in
    clang) echo "the unit tests of libcore, compiled by clang: other warnings, another standard library's macros" ;;
    threads) echo "ThreadSanitizer over what starts threads" ;;
    fuzz) echo "every fuzzer for a fixed number of runs" ;;
    levels) echo "the tests of onednn and 5,000 drawn networks, at every level of instructions of this CPU" ;;
    scaling) echo "no filter takes quadratic time: instructions counted by valgrind" ;;
    packages) echo "the Debian packages, built, checked and unpacked" ;;
    python) echo "the exporters, with PyTorch" ;;
    torture) echo "hostile files and interrupted writes against all programs" ;;
    lint) echo "clang-tidy over what changed last (--since), shellcheck and pyflakes over everything" ;;
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

# Tests of the release tree, by label.
gate_label() {
  cmake --preset release >/dev/null &&
    cmake --build --preset release --parallel "$(nproc)" &&
    OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-PASSIVE} \
      ctest --preset release --parallel "$(nproc)" --no-tests=error --label-regex "^$1$"
}

# clang-tidy takes 11 to 39 CPU seconds a file.
gate_lint() { if [[ -n $since ]]; then scripts/lint.sh --since "$since"; else scripts/lint.sh --recent 6; fi; }

gate_tidy() { scripts/lint.sh; }

gate_arm64() { scripts/check/arm64.sh; }

if [[ ${1:-} == --since ]]; then
  since=$(git rev-parse --verify --quiet "${2:-}^{commit}") || {
    echo "gates.sh: --since '${2:-}': no such commit" >&2
    exit 2
  }
  shift 2
fi
case ${1:-} in
  "") ;;
  -h | --help)
    sed -n '3,11s/^# \{0,1\}//p' "$0"
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
  gate=("gate_$name")
  [[ " ${labels[*]} " != *" $name "* ]] || gate=(gate_label "$name")
  if "${gate[@]}"; then
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
