# SPDX-License-Identifier: Apache-2.0
# Encoders with decoders as PyTorch's exporter writes them: T5, whose biases by position stand beside cross attention, and
# M2M100, with planes of batch times heads and positions that are counted from ids. What they say of ids is what PyTorch
# does, in steps of 4 and 1 (scripts/check/translators.py --write).
. "$CASES/lib.sh"
for name in t5-tiny m2m-tiny; do
  models=$TESTDATA/onnx/$name
  cut -d'|' -f1 "$models.nll" >source.ids
  cut -d'|' -f2 "$models.nll" >target.ids
  cut -d'|' -f3 "$models.nll" >want.nll
  npu-tag -q --states --capacity 20 --source-rows 16 "$models/decoder_with_past_model.onnx" -o decode.json
  npu-tag -q --encode-for decode.json --cross "$models/decoder_model.onnx" "$models/encoder_model.onnx" -o encode.json
  for devices in cpu npu,cpu; do
    npu-compile -q --devices "$devices" --entry encode=encode.json --entry decode=decode.json \
      --buckets encoder_sequence_length=8,16 --buckets decoder_sequence_length=1,4 -o m.npub
    npu-run m.npub --score target.ids --source source.ids >report.json
    tr -d ' \n' <report.json | grep -o '"nll":[0-9.e-]*' | cut -d: -f2 |
      paste - want.nll | awk -v what="$name on $devices" '
        { apart = $1 - $2; if (apart * apart > 1e-6) print what ": line " NR ": " $1 ", expected " $2 }
        END { print what ": " NR " lines" }'
  done
done
