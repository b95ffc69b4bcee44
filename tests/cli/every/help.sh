# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
for program in $programs; do
  echo "== $program"
  $program --help
done
