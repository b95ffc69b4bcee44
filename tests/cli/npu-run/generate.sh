# SPDX-License-Identifier: Apache-2.0
# The token loop: ids in, ids out, as a filter; the ids are those that NumPy gives (decoder.py).
. "$CASES/lib.sh"
npu-compile -q --devices cpu "$TESTDATA/models/decoders/decoder_tiny.json" --bind C=64 --buckets T=1,8,32 -o tiny.npub
echo "entries, those for the loop with the logits of the last token alone:"
npu-compile --info tiny.npub | grep -o '"name":"T=[^"]*"\|"logits":"[a-z]*"' | paste -sd' '
prompt='47 68 25 67 83 23 92'
echo "$prompt" >prompt.ids
echo "a file, to a file:"
npu-run tiny.npub --generate 20 --tokens prompt.ids --tokens-out out.ids --assert 'new_ids==20' \
  --assert 'state_copied_bytes==0' --assert 'state_transfer_bytes==0' -o report.json
echo "exit $?"
cat out.ids
grep -o '"ended": *"[a-z]*"' report.json
echo "a pipe, to a pipe, two requests:"
{ echo "$prompt"; echo 1 2 3; } | npu-run tiny.npub --generate 5 --tokens - --tokens-out -
echo "exit $?"
echo "without --tokens-out the report has the ids:"
npu-run tiny.npub --generate 3 --tokens prompt.ids | tr -d ' \n' | grep -o '"ids":[^]]*]'
echo "a stop id ends a line:"
npu-run tiny.npub --generate 20 --tokens prompt.ids --tokens-out - --stop 3,21,82 -o report.json
grep -o '"ended": *"[a-z]*"' report.json
echo "--keep goes on behind what was read and written:"
{ echo 47 68 25; echo 67 83; } | npu-run tiny.npub --generate 2 --tokens - --tokens-out kept.ids --keep --report 2>/dev/null >report.json
first=$(sed -n 1p kept.ids)
echo "47 68 25 $first 67 83" | npu-run tiny.npub --generate 2 --tokens - --tokens-out - >whole.ids
[ "$(sed -n 2p kept.ids)" = "$(cat whole.ids)" ] && echo same
echo "the end of the cache:"
npu-run tiny.npub --generate 200 --tokens prompt.ids --tokens-out - -o report.json
echo "exit $?, $(grep -o '"ended": *"[a-z]*"' report.json)"
yes 1 | head -n 65 | paste -sd' ' >long.ids
try npu-run tiny.npub --generate 1 --tokens long.ids --tokens-out -
{ echo "$prompt"; cat long.ids; } >both.ids
try npu-run tiny.npub --generate 1 --tokens both.ids --tokens-out -
echo "lines before a faulty one of a pipe are right:"
{ echo "$prompt"; echo 1 96; } | try npu-run tiny.npub --generate 3 --tokens - --tokens-out -
echo "draws are the same again, and others with another seed:"
draw() { npu-run tiny.npub --generate 12 --tokens prompt.ids --tokens-out - --temperature 1.5 --top-k 20 --top-p 0.95 --seed "$1"; }
draw 1 >a.ids; draw 1 >b.ids; draw 2 >c.ids
cmp -s a.ids b.ids && echo same
cmp -s a.ids c.ids || echo other
echo "saved behind 10 ids and continued in another process:"
npu-run tiny.npub --generate 10 --tokens prompt.ids --tokens-out first.ids --state-out states >report.json
awk '{ print $NF }' first.ids | npu-run tiny.npub --generate 10 --tokens - --tokens-out second.ids --state-in states >report.json
[ "$(cat first.ids second.ids | paste -sd' ')" = "$(cat out.ids)" ] && echo same
try npu-run tiny.npub --generate 1 --tokens prompt.ids --state-in "$TESTDATA/models/small/mlp.safetensors"
echo "scores:"
echo "$prompt $(cat out.ids)" >text.ids
npu-run tiny.npub --score text.ids --assert 'nll_per_token<20' | grep scored_ids
{ cat text.ids; echo 1; } | npu-run tiny.npub --score - --assert 'requests==2' | grep scored_ids
try_silent npu-run tiny.npub --score long.ids
echo "assertions are judged after the last line:"
try npu-run tiny.npub --generate 1 --tokens prompt.ids --tokens-out - --assert 'new_ids==2'
