#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks manual pages, completion, README and change log against the programs in build/bin.
#
# Usage: scripts/check_docs.sh           all of it, as ctest -L docs does
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
status=0
for check in options pages examples readme changelog; do
  sh tests/docs/check_docs.sh "$check" "$PWD" "${BUILD_DIR:-$PWD/build}/bin" || status=1
done
exit $status
