#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts for how many functional, non-backward overloads of the installed libtorch the schema binder
# builds the argument stack, and how many ran on made-up arguments with the results of a direct call;
# lists the rest with the reason. Exits 4 if fewer than 98 % are bound. Takes some minutes.
#
# Usage: scripts/aten_coverage.sh [--list] [--seed N] [--attempts N] [NAME_PART]
#   --list      every overload that was not bound or did not run, with the reason
#   NAME_PART   only overloads whose op type contains this, such as "conv" or "index_add"
set -euo pipefail
case ${1:-} in
  -h | --help)
    sed -n '3,9s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
./scripts/quickstart.sh --packages-only >&2
cmake --preset release >/dev/null
cmake --build --preset release --target aten_coverage npu_backend_aten >&2
# Some ops write files; they go to a folder that is removed.
program=$PWD/build/bin/aten_coverage
export NPU_BACKEND_PATH=$PWD/build/lib/npu/backends
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$program" "$@"
