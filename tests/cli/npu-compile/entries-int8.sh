# SPDX-License-Identifier: Apache-2.0
# Documents of one bundle, calibrated one after the other: what the encoder writes into states for a sample is what the
# decoder reads there.
. "$CASES/lib.sh"
models=$TESTDATA/models/translators
# As numbers, with one axis more in front: a sample.
row() {
  numbers "$@"
  LC_ALL=C sed -i "1s/($(($# - 1)),), }  /(1, $(($# - 1))), }/" "$1.npy"
}
row source_ids 9 7 49 59 37 40 54 15
row input_ids 1 56 28 10 28 10 42 22
row positions 0 1 2 3 4 5 6 7
quantize() {
  npu-compile -q --entry encode="$models/translator.encode.json" --entry decode="$models/translator.decode.json" --quantize "$@"
}
samples="--calibrate source_ids=source_ids.npy --calibrate input_ids=input_ids.npy --calibrate cache_position=positions.npy"
# shellcheck disable=SC2086 # options without blanks
quantize int8 $samples --buckets S=8,24 --buckets T=1,4 -o int8.npub --assert 'entries==5' --assert 'weights_copies==1' \
  --assert 'int8_macs>=0.5' --assert 'snr_db>=22' --assert 'int8_ops>=40'
echo "int8: exit $?"
# shellcheck disable=SC2086
quantize int8 $samples --buckets T=4,1 --buckets S=24,8 --no-cache -o again.npub
cmp int8.npub again.npub && echo same
# shellcheck disable=SC2086
quantize mixed --max-error 1e-2 $samples --bind S=8 --buckets T=1 -o mixed.npub --assert 'predicted_error<=1e-2' --assert 'snr_db>=15'
echo "mixed: exit $?"
echo 9 7 49 >source.ids
echo 1 | npu-run int8.npub --generate 6 --source source.ids --tokens - --tokens-out new.ids --assert 'state_copied_bytes==0' \
  --assert 'new_ids==6' -o report.json
echo "run: exit $?"

echo "samples that do not fit:"
# shellcheck disable=SC2086
refused() { try quantize int8 --buckets S=8 --buckets T=1 "$@" -o refused.npub; }
refused --calibrate source_ids=source_ids.npy
refused --calibrate source_ids=source_ids.npy --calibrate ids=input_ids.npy
refused --calibrate input_ids.npy
refused --calibrate encode:input_ids=input_ids.npy
refused --calibrate decode=missing.safetensors
refused
listen() {
  npu-compile -q --entry decode="$models/listener.decode.json" --entry encode="$models/listener.encode.json" --quantize int8 \
    --calibrate features="$models/listener.features.npy" --calibrate cache_position=positions.npy --buckets T=1 "$@"
}
# There are two sounds, but one line of ids.
try listen --calibrate input_ids=input_ids.npy -o refused.npub
[ -e refused.npub ] && echo "a bundle was written"

echo "the decoder first, and samples for one of the documents:"
two() {
  numbers "$@"
  LC_ALL=C sed -i '1s/(16,), }    /(2, 1, 8), }/' "$1.npy"
}
two input_ids 1 44 39 44 46 56 46 56 1 56 28 51 28 10 29 58
two positions 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
LC_ALL=C sed -i '1s/(2, 1, 8), }/(2, 8), }   /' positions.npy
listen --calibrate decode:input_ids=input_ids.npy -o listener.npub --assert 'snr_db>=22' --assert 'entries==2'
echo "exit $?"
