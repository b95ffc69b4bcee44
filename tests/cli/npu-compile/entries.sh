# SPDX-License-Identifier: Apache-2.0
# Several documents in one bundle, which share states and weights.
. "$CASES/lib.sh"
models=$TESTDATA/models/translators
encode=$models/translator.encode.json
decode=$models/translator.decode.json
compile() { npu-compile -q --devices cpu "$@"; }
compile --entry encode="$encode" --entry decode="$decode" --buckets S=8,24 --buckets T=1 -o t.npub \
  --assert 'entries==3' --assert 'weights_copies==1'
echo "exit $?"
npu-compile --info t.npub | tr -d ' \n' | grep -o '"documents":[^]]*]'
npu-compile --info --report t.npub 2>&1 >/dev/null | sed -n '/^entry/,/^$/p' | cut -c1-24
echo "the same again, sizes in another order:"
compile --entry encode="$encode" --entry decode="$decode" --buckets T=1 --buckets S=24,8 -o again.npub
cmp t.npub again.npub && echo same
echo "bound, without buckets:"
compile --entry encode="$encode" --entry decode="$decode" --bind S=24 --bind T=1 -o bound.npub
echo "exit $?"
npu-compile --info bound.npub | tr -d ' \n' | grep -o '"documents":[^]]*]'
echo "what does not go together:"
try compile --entry encode="$encode" -o x.npub
try compile --entry encode="$encode" --entry encode="$decode" --buckets S=8 --buckets T=1 -o x.npub
try compile --entry 'en code='"$encode" --entry decode="$decode" -o x.npub
try compile --entry encode --entry decode="$decode" -o x.npub
try compile --entry encode="$encode" --entry decode="$decode" --buckets T=1 -o x.npub 2>&1 | sed "s|$models/||g"
try compile --entry encode="$encode" --entry decode="$decode" --buckets S=8 --buckets T=1 --buckets Q=3 -o x.npub
try compile --entry encode="$encode" --entry decode="$decode" --buckets S=8 --bind T=1 --bind Q=3 -o x.npub
try compile --entry encode="$encode" --entry decode="$decode" --buckets S=25 --bind T=1 -o x.npub
try compile --entry encode="$encode" --entry decode="$decode" --bucket S=8,T=1 -o x.npub
try compile --entry encode="$encode" --entry decode="$decode" --buckets S=8 --buckets T=1 "$decode" -o x.npub
echo "documents with other states:"
sed 's/decoder\.1\.cross\.values/decoder.1.cross.other/' "$encode" >"other.json"
cp "$models/translator.encode.safetensors" .
try compile --entry encode=other.json --entry decode="$decode" --buckets S=8 --buckets T=1 -o x.npub
try compile --entry encode="$models/listener.encode.json" --entry decode="$decode" --buckets T=1 -o x.npub
