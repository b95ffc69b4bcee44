#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets with clang, libFuzzer and sanitizers in build-fuzz/ and runs each for a while.
# What it finds lands in build-fuzz/crashes/; copy it to testdata/corpus/<name>/ under a name that says
# what is wrong, so that every test run replays it.
#
# Usage: scripts/check/fuzz.sh [SECONDS [NAME...]]        60 seconds each and all targets unless said otherwise
#        scripts/check/fuzz.sh --runs NUMBER [NAME...]    a fixed number of runs from a fixed seed, as gates.sh does; what
#                                                   it learns is forgotten, so every run does the same; inputs
#                                                   have at most 4 KiB, for the target passes, which takes seconds
#                                                   for each, 1 KiB
#        scripts/check/fuzz.sh --list                     the targets with their seed inputs
#
# The targets are those that npu_add_fuzzer() in tests/fuzz/CMakeLists.txt names; onednn_blob is among them if
# build/ has the onednn backend, which it loads from there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

limit=(-max_total_time=60 -timeout=10) runs=0
case ${1:-} in
  -h | --help)
    sed -n '3,16s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  --list) ;;
  --runs)
    runs=${2:?--runs needs a number}
    # A slow machine is not a failure; only an input that hangs is.
    limit=(-runs="$runs" -seed=1 -timeout=120)
    shift 2
    ;;
  "") ;;
  *[!0-9]*)
    echo "fuzz.sh: '$1' is no number of seconds; see scripts/check/fuzz.sh --help" >&2
    exit 2
    ;;
  *)
    limit=(-max_total_time="$1" -timeout=10)
    shift
    ;;
esac

backends=$PWD/build/lib/npu/backends
[ -f "$backends/npu_backend_onednn.so" ] || backends=
cmake -S . -B build-fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_C_COMPILER="${CC:-clang}" -DCMAKE_CXX_COMPILER="${CXX:-clang++}" \
  -DNPU_FUZZ=ON -DNPU_UNITY=ON -DNPU_SANITIZE=address,undefined -DNPU_BACKEND_ATEN=OFF -DNPU_BACKEND_ONEDNN=OFF \
  -DNPU_FUZZ_BACKEND_DIR="$backends" >/dev/null
# One line for each target: its name, then the folders of inputs that it starts from.
list=build-fuzz/tests/fuzz/fuzzers.txt
if [ "${1:-}" = --list ]; then
  cat "$list"
  exit 0
fi
names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(cut -d ' ' -f 1 "$list")
for name in "${names[@]}"; do
  grep -q "^$name " "$list" || {
    echo "fuzz.sh: no fuzz target '$name'; expected one of: $(cut -d ' ' -f 1 "$list" | paste -sd ' ')" >&2
    exit 2
  }
done
cmake --build build-fuzz --parallel "$(nproc)" --target "${names[@]/%/_fuzzer}"

mkdir -p build-fuzz/crashes
status=0
for name in "${names[@]}"; do
  inputs=build-fuzz/inputs/$name
  read -ra seeds < <(grep "^$name " "$list" | cut -d ' ' -f 2-)
  max_len=65536
  if [ "$runs" -gt 0 ]; then
    # Whole models take seconds each under sanitizers, and every test run replays them: only small inputs here.
    max_len=4096
    [ "$name" != passes ] || max_len=1024
    inputs=build-fuzz/inputs-of-run/$name
    rm -rf "$inputs" "$inputs.seeds"
    mkdir -p "$inputs.seeds"
    find "${seeds[@]}" -type f -size "-$((max_len + 1))c" | LC_ALL=C sort | while read -r file; do
      cp "$file" "$inputs.seeds/${file//\//-}"
    done
    seeds=("$inputs.seeds")
  fi
  mkdir -p "$inputs"
  echo "== $name: ${limit[*]}"
  "build-fuzz/tests/fuzz/${name}_fuzzer" "${limit[@]}" -rss_limit_mb=4096 \
    -max_len=$max_len -print_final_stats=1 -verbosity=0 -artifact_prefix="build-fuzz/crashes/$name-" \
    "$inputs" "${seeds[@]}" || {
    echo "fuzz.sh: $name failed; its input is in build-fuzz/crashes/" >&2
    status=1
  }
done
exit "$status"
