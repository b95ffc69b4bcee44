# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
bad_option() {
  try "$1" --no-such-option
  try "$1" -z
  try "$1" one.json two.json
  try "$1" --quiet=maybe
}
alike "bad option" bad_option $programs
