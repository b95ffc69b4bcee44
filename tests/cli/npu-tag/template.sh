# SPDX-License-Identifier: Apache-2.0
# Templates: of an ONNX model whose dimensions have names of their own, and of a template with some sizes bound.
. "$CASES/lib.sh"
onnx=$TESTDATA/onnx/cached.onnx
tagger=$TESTDATA/models/templates/tagger.json
try npu-tag "$onnx"
npu-tag --template "$onnx" -o open.json
symbols() { tr -d ' \n' | sed 's/.*"symbols":\({.*}\),*"weights_map".*/\1/; s/.*"symbols":\({.*\)}}$/\1/'; echo; }
symbols <open.json
grep -o '"name":"[a-z_]*","shape":\[[^]]*\]' open.json | sort -u
echo "bound:"
npu-tag --devices cpu --bind new=2 --bind past_0=3 open.json | grep -o '"name":"[a-z_]*","shape":\[[^]]*\]' | grep 'mask"\|shares'
echo "with the past bound:"
npu-tag --template --bind past_0=6 "$onnx" | grep -o '"name":"mask","shape":\[[^]]*\]' | head -1
npu-tag --template --bind P=6 "$tagger" | symbols
try npu-tag --template --bind P=70 --bind S=2 "$tagger"
try npu-tag --template "$TESTDATA/models/small/mlp.json"
try npu-tag --template --bind new=2 --bind past_0=3 "$onnx"
