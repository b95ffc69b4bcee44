# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
version() { try "$1" --version; }
alike "version" version $programs
