# SPDX-License-Identifier: Apache-2.0
# Errors of ops are those of the integers that the target asks for: weights of 7 bits have larger ones.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
npu-tag --print-target >host.json
for bits in 8 7; do
  sed "s/\"backend\": *\"onednn\",/& \"quantization\": {\"weights\": \"int$bits per-channel symmetric\"},/" host.json >target.json
  npu-profile -q "$small/residual.json" --calibrate "$small/residual.inputs.safetensors" --target ./target.json -o ranges.json
  sed -n 's/.*"power": *\([0-9.e-]*\).*/\1/p' ranges.json >errors.$bits
done
paste errors.8 errors.7 | awk '
  { eight += $1; seven += $2 }
  END { print (NR > 3 ? "measured" : "too few"), (seven > 1.3 * eight ? "larger" : "as large: " eight " and " seven) }'
