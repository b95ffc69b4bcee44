# SPDX-License-Identifier: Apache-2.0
# What a step replaces as a whole becomes a state by its names: of a streaming model, whose outputs NumPy has computed, and
# of a decoder that keeps inputs of a convolution beside its caches.
. "$CASES/lib.sh"
onnx=$TESTDATA/onnx
states() { tr -d ' \n' <"$1" | grep -o '"states":\[[^]]*\]'; }
voice="--state context=contextN --state state=stateN --state count=countN --state mean=meanN"
for device in npu,cpu cpu; do
  # shellcheck disable=SC2086 # options
  npu-tag -q --devices $device --bind N=1 $voice "$onnx/voice.onnx" | npu-partition -q >voice.json
  npu-run -q voice.json --steps 7 --inputs "$onnx/voice_in.safetensors" --expect "$onnx/voice_out.safetensors" --atol 1e-6 \
    --assert 'state_copied_bytes==0' --assert 'state_transfer_bytes==0' >report
  echo "$device: exit $?, $(comparison expect <report)"
done
states voice.json
echo "for any batch:"
# shellcheck disable=SC2086 # options
npu-tag --template $voice "$onnx/voice.onnx" -o any.json && states any.json
npu-compile -q --bind N=1 any.json -o voice.npub
npu-run -q voice.npub --steps 7 --inputs "$onnx/voice_in.safetensors" --expect "$onnx/voice_out.safetensors" --atol 1e-6 >report
echo "a bundle: exit $?, $(comparison expect <report)"
echo "beside caches:"
npu-tag --states --capacity 16 --state 'past_conv.*=present_conv.*' "$onnx/decoder_hybrid.onnx" -o hybrid.json
states hybrid.json
npu-compile -q --bind new=1 hybrid.json -o hybrid.npub
printf '3 1 4 1 5\n' >tokens
npu-run -q hybrid.npub --generate 6 --tokens tokens --tokens-out - --assert 'state_copied_bytes==0'
npu-compile -q --buckets new=1,8 hybrid.json -o steps.npub
npu-run -q steps.npub --generate 6 --tokens tokens --tokens-out -
echo "what does not fit:"
try npu-tag --bind N=1 --state h0=hn "$onnx/voice.onnx"
try npu-tag --bind N=1 --state 'con*=state' "$onnx/voice.onnx"
try npu-tag --bind N=1 --state context=speech "$onnx/voice.onnx"
try npu-tag --states --capacity 16 "$onnx/decoder_hybrid.onnx"
try npu-tag --states --capacity 16 --state context=contextN "$onnx/voice.onnx"
