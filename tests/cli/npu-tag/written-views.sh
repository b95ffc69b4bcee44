# SPDX-License-Identifier: Apache-2.0
# A document whose in-place node writes through a view of what is read later: a warning with both nodes, once in a pipe, and the
# numbers are those of functional nodes.
. "$CASES/lib.sh"
tensor() { echo "{\"name\": \"$1\", \"shape\": $2, \"dtype\": \"${3:-float32}\"}"; }
cat >views.json <<DOCUMENT
{"model_name": "views", "graph_inputs": [$(tensor x '[2, 3]'), $(tensor mask '[6]' bool)], "graph_outputs": [$(tensor sum '[2, 3]')],
 "weights": [], "nodes": [
 {"name": "flat", "op_type": "aten.view.default", "inputs": [$(tensor x '[2, 3]')], "outputs": [$(tensor flat '[6]')],
  "attrs": {"size": [6]}},
 {"name": "filled", "op_type": "aten.masked_fill_.Scalar", "inputs": [$(tensor flat '[6]'), $(tensor mask '[6]' bool)],
  "outputs": [$(tensor filled '[6]')], "attrs": {"value": 0}},
 {"name": "sum", "op_type": "aten.add.Tensor", "inputs": [$(tensor x '[2, 3]'), $(tensor x '[2, 3]')],
  "outputs": [$(tensor sum '[2, 3]')]}]}
DOCUMENT
npu-tag views.json 2>err | npu-fuse 2>>err | npu-partition 2>>err | npu-run --random-inputs 1 --outputs out.safetensors >/dev/null 2>>err
cat err
npu-compile views.json -o views.npub
npu-tag -q views.json >/dev/null
