# SPDX-License-Identifier: Apache-2.0
# Every option works on a bundle as on the document it was compiled from.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
npu-tag --force 'cpu=aten.gelu*' "$small/mlp.json" | npu-partition -o part.json
npu-compile part.json -o m.npub
in="--inputs $small/mlp.inputs.safetensors"
npu-run part.json $in --outputs document.safetensors >document
npu-run m.npub $in --outputs bundle.safetensors >report
cmp document.safetensors bundle.safetensors && echo "same outputs"
[ "$(number transfers <document)" = "$(number transfers <report)" ] && echo "same transfers"
grep -o '"bundle"' report
npu-run m.npub $in --weights "$small/mlp.safetensors" --verify cpu --trace trace.json --bench 3 --threads 1 --no-overlap >report
echo "exit $?, verified: $(comparison verify <report)"
sed -n '/"bench"/,/}/s/^ *"\([a-z0-9_]*\)".*/\1/p' report | paste -sd' '
grep -c '"ph":"X"' trace.json | sed 's/^[1-9][0-9]*$/slices/'
echo "stdin, as a file and as a pipe:"
npu-run $in --assert 'transfers==2' <m.npub >report; echo "exit $?"
cat m.npub | npu-run $in --assert 'transfers<1' >report; echo "exit $?"
echo "other targets and devices:"
try_silent npu-run m.npub $in --target pytorch-apple
try_silent npu-run m.npub $in --verify gpu
echo "random weights are made up again:"
npu-compile --random-weights 7 "$small/mlp.json" -o r.npub
npu-run r.npub $in --verify cpu >report; echo "exit $?, verified: $(comparison verify <report)"
