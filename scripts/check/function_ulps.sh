#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the functions of one operand of the onednn backend over all 2^32 floats, at every level that the CPU has, against
# float64: one line for each with the largest error in units of the last place, and where it is. Fails if one is above 2.
# npu-onednn(7) has the table. Some two minutes a function on two cores.
#
# Usage: scripts/check/function_ulps.sh [BUILD-FOLDER]     default: build
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-build}
cmake --build "$build" --target npu_kernel_tests
"$build/bin/npu_kernel_tests" '[.all_floats]'
