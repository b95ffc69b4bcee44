#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs the tests that every change has to pass: those with one of the labels below,
# and unit and corpus tests once more under AddressSanitizer and UndefinedBehaviorSanitizer. Tests with other labels take
# longer or need more than quickstart.sh installs: scripts/gates.sh runs those.
#
# Usage: scripts/test.sh          everything
#        scripts/test.sh --fast   without the sanitizers
#
# It ends with the tests that were skipped, each with its reason, and a line that says how many passed and failed; the
# exit status is 0 only if none failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fast=0
case "${1:-}" in
  "") ;;
  --fast) fast=1 ;;
  *)
    printf 'Usage: %s [--fast]\n' "$0" >&2
    exit 2
    ;;
esac

# Tests run in parallel; workers that spin while they wait for work would starve each other.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-PASSIVE}

# tests/tree/check_tiers.sh reads this line.
labels='unit|cli|docs|install|tree|fuzz|onnx'
passed=0
failed=0
skipped=()

# Runs ctest in a build tree and adds up its results. $1: preset, $2: labels, rest: further options of ctest.
run_tests() {
  local preset=$1 tests=$2 tree=build
  shift 2
  [[ $preset == release ]] || tree="build-$preset"
  local results="$PWD/$tree/test-results.xml"
  rm -f "$results"
  local status=0
  ctest --preset "$preset" --parallel "$(nproc)" --no-tests=error --output-junit "$results" --label-regex "^($tests)$" "$@" ||
    status=$?
  local all=0 bad=0 left_out=()
  if [[ -f $results ]]; then
    all=$(junit_count tests "$results")
    bad=$(junit_count failures "$results")
    mapfile -t left_out < <(skip_reasons "$results")
    skipped+=("${left_out[@]}")
  fi
  # ctest itself failed, or it counts a failure that is not in the file.
  if [[ $status -ne 0 && $bad -eq 0 ]]; then bad=1 all=$((all + 1)); fi
  passed=$((passed + all - bad - ${#left_out[@]}))
  failed=$((failed + bad))
}

# The number in an attribute of the <testsuite> element.
junit_count() {
  sed -n "/<testsuite /,/>/s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1
}

# "NAME: REASON" of each test that was skipped: its line that begins with "skipped: ", else its last one.
skip_reasons() {
  awk '
    /<testcase / { name = $0; sub(/.* name="/, "", name); sub(/".*/, "", name); reason = "it does not say why"; skips = output = said = 0 }
    /<skipped / { skips = 1 }
    sub(/.*<system-out>/, "") { output = 1 }
    output {
      ended = sub(/<[/]system-out>.*/, "")
      if (sub(/^skipped: /, "")) { said = 1; reason = $0 }
      else if ($0 != "" && !said) reason = $0
      if (ended) output = 0
    }
    /<[/]testcase>/ { if (skips) print name ": " reason }
  ' "$1" | sed "s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&apos;/'/g; s/&amp;/\&/g"
}

./scripts/quickstart.sh --packages-only --with-opencl

printf '\n==> Release: build and test\n'
cmake --preset release
cmake --build --preset release --parallel "$(nproc)"
run_tests release "$labels"

if [[ $fast -eq 0 ]]; then
  printf '\n==> AddressSanitizer and UndefinedBehaviorSanitizer: build and test\n'
  # To save time: less optimisation and debug information than in the preset (for line numbers in a report, configure
  # the preset itself), the test objects of the release tree, and no UBSan check of every pointer dereference;
  # AddressSanitizer checks those accesses. Assertions are on.
  cmake --preset asan -DNPU_UNIT_OBJECTS="$PWD/build" -DNPU_NO_SANITIZE=null,object-size,vptr,alignment,pointer-overflow \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g0 -fno-sanitize-address-use-after-scope -D_GLIBCXX_ASSERTIONS"
  targets=(npu_unit_tests npu-run npu_backend_aten npu_backend_onednn npu_backend_skeleton npu_backend_skeleton_queue)
  for source in tests/fuzz/*_fuzzer.cpp; do
    name=$(basename "$source" _fuzzer.cpp)
    targets+=("replay_$name")
  done
  cmake --build --preset asan --parallel "$(nproc)" --target "${targets[@]}"
  # LeakSanitizer's tracer crashes beside the threads of OpenMP ("tracer caught signal 11") on some kernels
  # and fails tests that have no leak; memory and undefined-behaviour errors are still fatal.
  # Some tests request more memory than there is and expect the error.
  export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
  # The passes over all small models take minutes this way; scripts/check/fuzz.sh runs them under sanitizers. The
  # kernels' portable code is tested in the release tree; here those with vectors are.
  run_tests asan 'unit|fuzz' --exclude-regex '^(fuzz[.]passes|unit[.]backends[.]onednn[.]generic)$'
fi

if [[ ${#skipped[@]} -gt 0 ]]; then
  printf '\n==> Skipped: %d\n' ${#skipped[@]}
  printf '%s\n' "${skipped[@]}"
fi
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
