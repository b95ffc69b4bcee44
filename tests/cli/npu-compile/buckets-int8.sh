# SPDX-License-Identifier: Apache-2.0
# A template is quantized once for all its sizes, since scales do not depend on them; weights of a bundle are found in the
# model that it was made from.
. "$CASES/lib.sh"
model=$TESTDATA/onnx/text_encoder.onnx
# As numbers, of shape [1, N].
matrix() {
  numbers "$@"
  LC_ALL=C sed -i "1s/($(($# - 1)),), }  /(1, $(($# - 1))), }/" "$1.npy"
}
matrix input_ids 5 9 1 44 17 3 60 22
matrix attention_mask 1 1 1 1 1 1 1 1
samples="--calibrate input_ids=input_ids.npy --calibrate attention_mask=attention_mask.npy"
# shellcheck disable=SC2086 # options without blanks
npu-compile -q --bind batch=1 --buckets length=4,16 --quantize int8 $samples "$model" -o int8.npub \
  --assert 'entries==2' --assert 'weights_copies==1' --assert 'int8_macs>=0.9' --assert 'snr_db>=20'
echo "exit $?"
npu-run int8.npub --inputs input_ids=input_ids.npy --inputs attention_mask=attention_mask.npy --weights "$model" \
  --verify npu --rtol 0 --atol 1e-5 >report
echo "exit $? $(grep -o '"entry": *"[^"]*"' report) $(grep -o '"padded_share":[^,]*' report)"
echo "a decoder, whose states begin at zero:"
matrix ids 47 68 25 67 83 23 92 86
numbers places 0 1 2 3 4 5 6 7
npu-compile -q --bind C=64 --buckets T=1,8 "$TESTDATA/models/decoders/decoder_tiny.json" --quantize int8 \
  --calibrate input_ids=ids.npy --calibrate cache_position=places.npy -o decoder.npub --assert 'entries==3' --assert 'snr_db>=20'
echo "exit $?"
echo "without weights, and with samples that say no size:"
npu-compile -q --bind batch=1 --buckets length=16 "$model" -o float.npub
try npu-run float.npub --bind length=9 --random-inputs 1 --verify npu
try npu-compile -q --bind batch=1 --buckets length=4 --quantize int8 --calibrate other=input_ids.npy "$model" -o bad.npub
[ -e bad.npub ] && echo "a bundle was written"
true
