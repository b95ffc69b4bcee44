#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Attacks every tool with what it may meet outside: damaged documents, bundles (digests made right again), weights,
# graphs, tables, plans, ranges, quantized documents, ONNX files, targets, binary graphs, plans with ranks and folders of
# compiled units; compilers that are killed while they share a cache; hostile libraries; special values; full
# disks, closed pipes, limits on files, FIFOs, files that shrink, foreign owners.
#
# Usage: scripts/check/torture.sh [MINUTES] [--seed N] [--cases N] [--first N] [--only ATTACK] [--bin DIR] [--keep DIR] [--list]
#
# MINUTES (1 by default) is how long attacks follow each other; --cases gives their number instead. The same seed gives
# the same attacks; --first N --cases 1 repeats the one that a message names. A tool must end by itself within 10 seconds, with an exit status of 0 to 4 and a message where it is
# not 0, in bounded memory, without files left over and without raw control characters on standard error. What does not
# is cut down to a small case, kept in --keep (torture-failures/ by default) and printed with its command.
# The exit status is 0 if every attack was withstood. Needs python3 and libxxhash; 77 without.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v python3 >/dev/null || {
  echo "torture.sh: python3 not found; on Debian: apt-get install python3" >&2
  exit 77
}
exec python3 -B scripts/check/torture/torture.py "$@"
