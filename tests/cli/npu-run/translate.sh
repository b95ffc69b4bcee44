# SPDX-License-Identifier: Apache-2.0
# Text generation by an encoder with a decoder; the ids are those that PyTorch gives (testdata/models/translators.py).
. "$CASES/lib.sh"
models=$TESTDATA/models/translators
npu-compile -q --devices cpu --entry encode="$models/translator.encode.json" --entry decode="$models/translator.decode.json" \
  --buckets S=8,16 --buckets T=1,4 -o t.npub
head -n 2 "$models/translator.ids" | cut -d'|' -f1 >source.ids
head -n 2 "$models/translator.ids" | cut -d'|' -f2 >want.ids
{ echo 1; echo 1; } >start.ids
echo "a source and the ids to begin with, a line a request:"
npu-run t.npub --generate 20 --source source.ids --tokens start.ids --tokens-out out.ids -o report.json --assert 'state_transfer_bytes==0'
echo "exit $?"
cmp out.ids want.ids && echo "the ids of PyTorch"
grep -o '"encode": *"[^"]*"' report.json
echo "a pipe:"
npu-run t.npub --generate 3 --source - --tokens start.ids --tokens-out - <source.ids
echo "exit $?"
echo "saved behind 10 ids, and continued in another process:"
head -n 1 source.ids >first.ids
echo 1 | npu-run t.npub --generate 10 --source first.ids --tokens - --tokens-out a.ids --state-out states >report.json
awk '{ print $NF }' a.ids | npu-run t.npub --generate 10 --tokens - --tokens-out b.ids --state-in states >report.json
[ "$(cat a.ids b.ids | paste -sd' ')" = "$(head -n 1 want.ids)" ] && echo same
echo "scored by the source:"
echo "1 $(head -n 1 want.ids)" | npu-run t.npub --score - --source first.ids --assert 'nll_per_token<4' | grep scored_ids
echo "what is refused, before anything is computed:"
try npu-run t.npub --generate 1 --tokens start.ids
try npu-run t.npub --generate 1 --source source.ids
try npu-run t.npub --generate 1
try npu-run t.npub --generate 1 --source first.ids --tokens start.ids
try npu-run t.npub --generate 1 --source source.ids --tokens first.ids
echo 1 >one.ids
try npu-run t.npub --generate 1 --source source.ids --tokens one.ids
yes 2 | head -n 17 | paste -sd' ' - >long.ids
try npu-run t.npub --generate 1 --source long.ids --tokens one.ids
cat first.ids long.ids >both.ids
try npu-run t.npub --generate 1 --source both.ids --tokens start.ids
echo 61 >beyond.ids
try npu-run t.npub --generate 1 --source beyond.ids --tokens one.ids
try npu-run t.npub --generate 1 --source - --tokens -
try npu-run t.npub --generate 1 --source first.ids --tokens one.ids --keep
try npu-run t.npub --generate 1 --source first.ids --tokens one.ids --state-in states
try npu-run t.npub --source first.ids
try npu-run t.npub --random-inputs 0
npu-compile -q --devices cpu "$TESTDATA/models/decoders/decoder_tiny.json" --bind C=64 --buckets T=1 -o d.npub
try npu-run d.npub --generate 1 --source first.ids --tokens one.ids
echo "features of a sound:"
npu-compile -q --devices cpu --entry encode="$models/listener.encode.json" --entry decode="$models/listener.decode.json" \
  --buckets T=1 -o l.npub
npu-run l.npub --generate 20 --inputs features="$models/listener.features.npy" --tokens start.ids --tokens-out - >out.ids
cmp out.ids "$models/listener.ids" && echo "the ids of PyTorch"
try npu-run l.npub --generate 1 --source first.ids --tokens one.ids
try npu-run l.npub --generate 1 --inputs features="$models/listener.features.npy" --tokens one.ids
try npu-run l.npub --generate 1 --inputs x="$models/listener.features.npy" --tokens one.ids
