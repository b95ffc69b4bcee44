#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Times the convex and mincut strategies in process, on graphs of 4,000, 10,000 and 40,000 nodes.
#
# Usage: scripts/bench/partition_speed.sh [RUNS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmake --preset release >/dev/null
cmake --build build --target partition_speed >/dev/null
exec build/bin/partition_speed "$@"
