# SPDX-License-Identifier: Apache-2.0
# npu-profile reads stdin for - only, npu-plan never.
. "$CASES/lib.sh"
no_graph() { try "$1"; }
dash() {
  try "$1" -
  printf '  \n' | "$1" -
  echo "exit $?"
}
alike "no GRAPH" no_graph $graph_programs
alike "GRAPH is -" dash $graph_programs npu-profile
