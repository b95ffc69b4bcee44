# SPDX-License-Identifier: Apache-2.0
# Names with quotes, backslashes, line ends and letters outside ASCII are quoted for Graphviz.
sed 's/"relu2"/"re\\"lu\\\\2\\n→"/g' "$CASES/npu-partition/seven_nodes.json" | npu-tag --force cpu=concat |
  npu-partition --dot plan.dot | grep -c '"kind"'
grep 'lu\\\\2' plan.dot
