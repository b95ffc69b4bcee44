#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets with clang, libFuzzer and sanitizers in build-fuzz/ and runs each for a while.
# What it finds lands in build-fuzz/crashes/; copy it to testdata/corpus/<name>/ under a name that says
# what is wrong, so that every test run replays it.
#
# Usage: scripts/fuzz.sh [SECONDS [NAME...]]     60 seconds each and all targets unless said otherwise
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
[ $# -gt 0 ] && shift
declare -A seeds=(
  [read_graph]="testdata/bad/document testdata/bad/partition testdata/models/small"
  [roundtrip]="testdata/bad/document testdata/models/small"
  [safetensors]="testdata/bad/safetensors testdata/models/small"
  [npy]="testdata/bad/npy"
  [bundle]="testdata/bad/bundle"
  [target]="testdata/bad/target"
  [read_data_graph]=""
  [patterns]="testdata/bad/patterns"
  [bind_arguments]="testdata/ops"
  [passes]="testdata/bad/document testdata/bad/partition testdata/models/small"
)
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(read_graph roundtrip safetensors npy bundle target read_data_graph bind_arguments passes patterns)

cmake -S . -B build-fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_C_COMPILER="${CC:-clang}" -DCMAKE_CXX_COMPILER="${CXX:-clang++}" \
  -DNPU_FUZZ=ON -DNPU_SANITIZE=address,undefined -DNPU_BACKEND_ATEN=OFF -DNPU_BACKEND_ONEDNN=OFF >/dev/null
cmake --build build-fuzz --target "${names[@]/%/_fuzzer}"

status=0
for name in "${names[@]}"; do
  mkdir -p "build-fuzz/inputs/$name" build-fuzz/crashes
  echo "== $name: $seconds s"
  # shellcheck disable=SC2086 -- a list of folders
  "build-fuzz/tests/fuzz/${name}_fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 \
    -max_len=65536 -print_final_stats=1 -verbosity=0 -artifact_prefix="build-fuzz/crashes/$name-" \
    "build-fuzz/inputs/$name" "testdata/corpus/$name" ${seeds[$name]} || status=1
done
exit "$status"
