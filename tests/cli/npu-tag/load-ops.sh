# SPDX-License-Identifier: Apache-2.0
# Ops of a library go to the devices that run every op, and stay in npu.target for later tools.
. "$CASES/lib.sh"
ln -s "$(dirname "$(command -v npu-tag)")/../tests/libaten_custom_ops.so" libmyops.so
model=$CASES/custom_ops.json
try_silent npu-tag "$model"
for library in libmyops.so ./libmyops.so; do
  npu-tag --load-ops $library "$model" >tagged.json && placement <tagged.json
done
grep -c '"test.summary"' tagged.json
npu-tag --load-ops libmyops.so --list-ops cpu | grep test
npu-tag --load-ops libmyops.so --print-target >target.json && npu-tag --target ./target.json "$model" | placement
echo "a device with the ops can be forced, another cannot:"
try_silent npu-tag --load-ops libmyops.so --force 'npu=test.*' "$model"
echo "libraries that are none:"
try npu-tag --load-ops missing.so "$model"
try npu-tag --load-ops "$model" "$model"
try npu-tag --load-ops libm.so.6 "$model"
try npu-tag --load-ops "" "$model"
echo "libraries that do something when they are loaded:"
ln -s "$(dirname "$(command -v npu-tag)")/../tests/libaten_bad_custom_ops.so" libbad.so
for NPU_TEST_FAULT in exit-0 crash; do
  export NPU_TEST_FAULT
  try npu-tag --load-ops libbad.so "$model"
done
NPU_TEST_FAULT=print npu-tag --load-ops libbad.so "$TESTDATA/models/small/mlp.json" 2>messages | head -c 1
echo
cat messages
unset NPU_TEST_FAULT
try npu-tag --load-ops
npu-tag --print-target | sed 's/"ops": *"\*"/"ops": []/' >none.json
try npu-tag --target ./none.json --load-ops libmyops.so "$model"
