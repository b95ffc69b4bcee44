#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that every label of a test stands in one tier: in scripts/test.sh, or as a gate of scripts/gates.sh. The label
# "threads" is the gate of that name, which runs it in a tree of its own.
#
# Usage: check_tiers.sh SOURCE-DIR   exits 1 with a line for each label that stands in none, in both, or is nobody's
set -eu
cd "$1"
first=$(sed -n "s/^labels='\(.*\)'$/\1/p" scripts/test.sh | tr '|' ' ')
second="$(sed -n 's/^labels=(\(.*\))$/\1/p' scripts/gates.sh) threads"
used=$(find tests -name CMakeLists.txt -exec grep -h -o -E 'LABELS [a-z]+|set\(label [a-z]+\)' {} + | sed 's/.* //; s/)//' | sort -u)
failed=0
# shellcheck disable=SC2086 # lists of words
for label in $used $first $second; do
  count=$(printf '%s\n' $first $second | grep -c -x "$label" || true)
  [ "$count" -eq 1 ] || {
    echo "label '$label': stands in $count of the lists of scripts/test.sh and scripts/gates.sh, expected in one"
    failed=1
  }
  echo "$used" | grep -q -x "$label" || {
    echo "label '$label': no test has it"
    failed=1
  }
done
[ "$(echo "$used" | wc -l)" -ge 8 ] || {
  echo "only these labels were found: $used"
  failed=1
}
exit $failed
