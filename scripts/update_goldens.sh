#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rewrites the expected outputs of the command-line tests, and the list of installed files, from what the
# programs in build/ do now. Golden means reviewed: read the whole diff before you commit it.
#
# Usage: scripts/update_goldens.sh [CTEST-OPTION...]     e.g. -R npu-tag
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build --preset release --parallel "$(nproc)"
UPDATE_GOLDENS=1 ctest --preset release -L '^(cli|install)$' "$@"
git diff --stat -- tests
