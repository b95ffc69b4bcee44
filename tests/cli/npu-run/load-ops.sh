# SPDX-License-Identifier: Apache-2.0
# Ops of a library run on the cpu device; without the library, the message names the option.
. "$CASES/lib.sh"
ln -s "$(dirname "$(command -v npu-run)")/../tests/libaten_custom_ops.so" libmyops.so
ln -s "$(dirname "$(command -v npu-run)")/../tests/libaten_bad_custom_ops.so" libbad.so
model=$CASES/custom_ops.json
echo "untagged:"
npu-run --load-ops libmyops.so --random-inputs 0 "$model" --outputs whole.safetensors >report.json
grep -c '"name":"relu"' report.json
echo "tagged, partitioned and compared:"
npu-tag --load-ops ./libmyops.so "$model" | npu-partition >plan.json
npu-run --load-ops ./libmyops.so --random-inputs 0 plan.json --expect whole.safetensors --verify cpu >report.json
comparison expect <report.json
comparison verify <report.json
echo "without the library:"
try npu-run --random-inputs 0 plan.json
echo "an op that fails, and one that gives no result:"
sed 's/test.scale/test.fail/' "$model" >fail.json
try npu-run --load-ops libmyops.so --random-inputs 0 fail.json
sed 's/test.scale/test.forget/' "$model" >forget.json
try npu-run --load-ops libmyops.so --random-inputs 0 forget.json
echo "libraries that are none:"
try npu-run --load-ops missing.so --random-inputs 0 "$model"
try npu-run --load-ops "$model" --random-inputs 0 "$model"
for fault in null version twice function clash; do
  echo "$fault:"
  NPU_TEST_FAULT=$fault npu-run --load-ops libbad.so --devices cpu --random-inputs 0 "$CASES/npu-run/two_inputs.json"
done
echo "twice the same ops:"
cp libmyops.so copy.so
try npu-run --load-ops libmyops.so --load-ops ./copy.so --random-inputs 0 "$model"
echo "a bad library is refused even if nothing needs it:"
npu-tag "$TESTDATA/models/small/mlp.json" | npu-partition >mlp.json
try npu-run --load-ops missing.so --random-weights 0 --random-inputs 0 mlp.json
