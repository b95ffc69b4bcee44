# SPDX-License-Identifier: Apache-2.0
# An encoder and a decoder of ONNX files, as exporters write them, become a bundle that generates; the ids are those that NumPy
# gives (testdata/onnx/translator.py).
. "$CASES/lib.sh"
models=$TESTDATA/onnx/translator
cut -d'|' -f1 "$models/translator.ids" >source.ids
cut -d'|' -f2 "$models/translator.ids" >want.ids
for _ in 1 2 3 4; do echo 0; done >start.ids
translate() {
  encode=$1
  decode=$2
  shift 2
  rm -f m.npub out.ids
  npu-compile -q --devices cpu --entry encode="$encode" --entry decode="$decode" --buckets encoder_sequence_length=8,16 "$@" \
    -o m.npub
  npu-run m.npub --generate 12 --source source.ids --tokens start.ids --tokens-out out.ids >report.json
  cmp out.ids want.ids && echo "the ids of NumPy"
}
states() { tr -d ' \n' <"$1" | grep -o '"states":[^]]*]' | tr '{' '\n' | grep '"name"' | tr -d '}]"'; }
echo "keys and values of the source are states:"
npu-tag --states --capacity 20 --source-rows 16 "$models/decoder_with_past_model.onnx" -o decode.json
states decode.json
npu-tag --encode-for decode.json --cross "$models/decoder_model.onnx" "$models/encoder_model.onnx" -o encode.json
states encode.json
translate encode.json decode.json
echo "hidden states are one:"
npu-tag --states --capacity 20 --source-rows 16 --start 0 "$models/decoder_hidden_model.onnx" -o hidden.json
states hidden.json
npu-tag --encode-for hidden.json "$models/encoder_model.onnx" -o encode_hidden.json
states encode_hidden.json
translate encode_hidden.json hidden.json --buckets decoder_sequence_length=1,4
npu-run m.npub --generate 12 --source source.ids --tokens-out - | cmp - want.ids && echo "without ids to begin with, too"
echo "both decoders in one file:"
npu-tag -q --states --capacity 20 --source-rows 16 --freeze use_cache_branch="$models/true.npy" "$models/decoder_model_merged.onnx" \
  -o merged.json
cp "$models/encoder_model.onnx" "$models/decoder_model_merged.onnx" .
npu-tag -q --template --freeze use_cache_branch="$models/false.npy" decoder_model_merged.onnx -o first.json
npu-tag --encode-for merged.json --cross first.json encoder_model.onnx -o encode_merged.json
translate encode_merged.json merged.json --buckets decoder_sequence_length=1,4
echo "what is refused:"
try npu-tag --states --capacity 20 "$models/decoder_with_past_model.onnx"
try npu-tag --states --capacity 20 --source-rows 16 "$TESTDATA/onnx/decoder_masked.onnx"
try npu-tag --states --capacity 20 --start 1 "$TESTDATA/onnx/decoder_masked.onnx"
try npu-tag --states --capacity 20 --source-rows 16 --start x "$models/decoder_hidden_model.onnx"
try npu-tag --encode-for decode.json "$models/encoder_model.onnx"
try npu-tag --encode-for decode.json --cross "$models/encoder_model.onnx" "$models/encoder_model.onnx"
try npu-tag --encode-for encode.json "$models/encoder_model.onnx"
try npu-tag --encode-for decode.json --cross "$models/decoder_model.onnx" "$models/decoder_hidden_model.onnx"
mkdir other
cp "$models/decoder_model.onnx" other
try npu-tag --encode-for decode.json --cross other/decoder_model.onnx "$models/encoder_model.onnx"
try npu-tag --cross x "$models/encoder_model.onnx"
try npu-compile -q --entry encode=encode_hidden.json --entry decode=decode.json --buckets encoder_sequence_length=8 -o x.npub
