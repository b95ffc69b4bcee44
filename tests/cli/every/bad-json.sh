# SPDX-License-Identifier: Apache-2.0
# npu-plan reads nothing from stdin; see its bad-file.sh.
. "$CASES/lib.sh"
bad_json() {
  printf '{"model_name": "m",\n "nodes": [}\n' | "$1" -
  echo "exit $?"
}
alike "bad JSON" bad_json $graph_programs npu-profile
