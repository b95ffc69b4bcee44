# SPDX-License-Identifier: Apache-2.0
# --ask: a backend takes away what the target's table allows too much, with its reason; the answers are written down; the
# table alone decides without it.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/faulty-backends" ]; then cat "$CASES/npu-tag/ask.stdout"; exit; fi
NPU_BACKEND_PATH=$lib/test-backends
export NPU_BACKEND_PATH
# A table that allows any relu, add and mul of floats.
sed 's/"aten.relu_.default"\]/"aten.relu_.default", "aten.mul.Tensor"]/; s/, "inputs": \[2, 2\], "requires".*\]}\]/}]/' \
  "$CASES/../../scripts/examples/skeleton/skeleton_target.json" >loose.json
model=$CASES/npu-tag/ask_model.json
tag() { npu-tag --target ./loose.json "$@" "$model"; }
echo "the table:"
tag | placement
echo "asked:"
tag --ask -o asked.json
placement <asked.json
grep -o '"asked":{[^}]*}' asked.json | sed 's/"questions":"[0-9a-f]*"/"questions":".."/'
tag --ask | cmp - asked.json && echo "the same bytes again"
npu-tag --ask --target ./loose.json asked.json | cmp - asked.json && echo "and of what it wrote"
echo "by hand:"
try_silent npu-tag --ask --force npu=scaled --target ./loose.json "$model"
echo "compiled:"
tag | npu-partition -o table.part.json
npu-partition asked.json -o asked.part.json
try_silent npu-run table.part.json --random-inputs 1
try_silent npu-run asked.part.json --random-inputs 1 --verify cpu
echo "a backend that allows everything, and compiles less:"
NPU_BACKEND_PATH=$lib/faulty-backends CHECK_FAULT=says-yes npu-tag --ask --target ./loose.json "$model" | placement
echo "another backend where it runs:"
sed 's/"fingerprint":"skeleton 1.0/"fingerprint":"skeleton 0.9/' asked.part.json >other.part.json
npu-run other.part.json --random-inputs 1 2>&1 >/dev/null
echo "whom nobody can ask:"
sed 's/"skeleton"/"vendor"/' loose.json >vendor.json
try_silent npu-tag --ask --target ./vendor.json "$model"
try_silent npu-tag --ask --target tpu "$model"
sed 's/"skeleton"/"nobody"/' loose.json >nobody.json
npu-tag --ask --target ./nobody.json "$model" 2>&1 >/dev/null | sed 's/ is in none of: .*;/ is in none of: ..;/'
echo "onednn, which takes what its table allows:"
for name in residual dtypes multi_output conv_kinds; do
  npu-tag "$TESTDATA/models/small/$name.json" | placement >table
  npu-tag --ask "$TESTDATA/models/small/$name.json" | placement | cmp - table && echo "$name"
done
echo "on any number of threads, and without --ask as if nobody could be asked:"
for threads in 1 8 1 8; do
  OMP_NUM_THREADS=$threads npu-tag --ask "$TESTDATA/models/resnet18.json" | cksum
done | sort -u | wc -l
mkdir nothing
npu-tag "$TESTDATA/models/resnet18.json" >told.json
for threads in 1 8; do
  OMP_NUM_THREADS=$threads NPU_BACKEND_PATH=$(pwd)/nothing npu-tag "$TESTDATA/models/resnet18.json" | cmp - told.json && echo "as before"
done
echo "a quantized document:"
small=$TESTDATA/models/small
npu-profile --calibrate "$small/residual.inputs.safetensors" "$small/residual.json" -o ranges.json
npu-align --quantize int8 --ranges ranges.json "$small/residual.json" -o int8.json
npu-tag --ask int8.json | npu-fuse | npu-partition -o int8.part.json
echo "exit $?, $(grep -c '"device": "npu"' int8.part.json) nodes on npu"
