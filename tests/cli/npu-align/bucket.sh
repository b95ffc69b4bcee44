# SPDX-License-Identifier: Apache-2.0
# Padding of a template, its certificate, and what is refused.
. "$CASES/lib.sh"
tagger=$TESTDATA/models/templates/tagger.json
npu-align --bucket S=32 --bind B=1 --bind P=16 "$tagger" -o bucket.json
npu-align --verify bucket.json
npu-align --bucket B=2,S=8 --bind P=1 "$tagger" -o two.json
tr -d ' \n' <bucket.json | grep -o '"padding":{"symbols":{[^}]*}}'
tr -d ' \n' <bucket.json | grep -o '"masks":\[[^]]*\],"for":\[[^]]*\]\|"masks":\[.*\],"cut":[0-9]*,"flow":[0-9]*'
echo "changed:"
sed 's/"scores", *2, *"S + 16", *"F"/"scores", 2, "S + 16", "R"/; s/"lowest"/"edge"/' bucket.json >changed.json
try npu-align --verify changed.json
try npu-align --verify "$TESTDATA/models/small/mlp.json"
echo "usage:"
try npu-align --bucket S=x "$tagger"
try npu-align --bucket S=4,S=5 "$tagger"
try npu-align --bucket Q=3,S=4,B=1 --bind P=16 "$tagger"
try npu-align --bucket S=4 "$tagger"
try npu-align --bucket S=4 "$TESTDATA/models/small/mlp.json"
try npu-align --bucket S=4 --explain "$tagger"
npu-align --bucket B=2 --bucket S=8 --bind P=1 "$tagger" | cmp - two.json && echo "the same in two options"
try npu-align --bucket S=4 --bucket S=5 --bind P=1 --bind B=1 "$tagger"
sed 's/"op_type": "aten.softmax.int"/"op_type": "aten.flip.default"/; s/"attrs": {"dim": -1}/"attrs": {"dims": [2]}/' "$tagger" >flip.json
try npu-align --bucket S=8 --bind B=1 --bind P=1 flip.json
