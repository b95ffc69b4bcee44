# SPDX-License-Identifier: Apache-2.0
# Constants whose values do not fit their dtype.
. "$CASES/lib.sh"
constant() { # DTYPE DATA
  echo "$1 $2:"
  cat >model.json <<END
{"graph_inputs": [], "graph_outputs": [{"name": "c"}], "nodes": [],
 "weights": [{"name": "c", "shape": [2], "dtype": "$1"}], "constants": {"c": {"data": $2, "dtype": "$1"}}}
END
  npu-run model.json 2>&1 | grep -E 'error|"dtype"'
}
constant int8 '[1, 128]'
constant uint8 '[1, -1]'
constant int16 '[1, 40000]'
constant int32 '[1, 2147483648]'
constant int64 '[1, 9223372036854775808]'
constant int64 '[1, 1.5]'
constant int64 '[1, 1e30]'
constant int64 '[1, "inf"]'
constant int64 '[1, "nan"]'
constant complex64 '[1, 2]'
echo "good:"
constant int64 '[1, true]'
constant int64 '[1, 2.0]'
constant bool '[1, false]'
constant float32 '["nan", "-inf"]'
constant bfloat16 '[1e30, 1e39]'
