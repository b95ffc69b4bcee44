# SPDX-License-Identifier: Apache-2.0
# Values for the sizes of a template: all that lack one are listed, the bound document is an ordinary one.
. "$CASES/lib.sh"
tagger=$TESTDATA/models/templates/tagger.json
try npu-tag "$tagger"
try npu-tag --bind S=5 "$tagger"
try npu-tag --bind S=5 --bind B=2 "$tagger"
try npu-tag --bind S=5 --bind B=2 --bind P=60 "$tagger"
try npu-tag --bind S=65 --bind B=2 --bind P=0 "$tagger"
try npu-tag --bind S=5 --bind B=2 --bind T=0 "$tagger"
try npu-tag --bind S=5 --bind S=6 "$tagger"
try npu-tag --bind '*=1' "$tagger"
try npu-tag --bind S=-1 "$tagger"
try npu-tag --bind S=9223372036854775808 "$tagger"
try npu-tag --bind S=5 "$TESTDATA/models/small/mlp.json"
echo "bound:"
npu-tag --devices cpu --bind S=5 --bind B=2 --bind P=3 "$tagger" -o bound.json
grep -o '"name": *"[a-z]*", "shape": *\[[^]]*\]\|"size": *\[[^]]*\]\|"end": *[^,]*\|symbols\|"npu": *{"version": *[0-9]*' bound.json | sort -u
npu-tag --devices cpu --bind S=5 --bind B=2 --bind P=3 <"$tagger" | cmp - bound.json && echo "from stdin the same"
try npu-fuse --bind S=5 bound.json
