#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs commands as on a CPU of a level of instructions. Where this CPU lacks the level it says so and exits 77, which
# ctest counts as skipped.
#
# Usage: run_level.sh LEVEL BIN_DIR MODEL COMMAND...   each COMMAND one word, split at blanks
set -uf
level=$1
bin_dir=$2
model=$3
shift 3
reason=$("$bin_dir/npu-compile" -q --no-cache --isa "$level" "$model" -o /dev/null 2>&1)
case $reason in
  *"level '$level' is "*)
    echo "skipped: $reason"
    exit 77
    ;;
  ?*)
    echo "$reason"
    exit 1
    ;;
esac
NPU_MAX_ISA=$level
export NPU_MAX_ISA
status=0
for command; do
  # shellcheck disable=SC2086 # a program and its arguments
  $command || status=1
done
exit $status
