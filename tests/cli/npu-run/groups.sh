# SPDX-License-Identifier: Apache-2.0
# --each, --isolate, --bisect, --reduce and --tap: where results begin to differ from --verify's.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/residual.json
inputs=$TESTDATA/models/small/residual.inputs.safetensors
rows() {
  sed -n 's/.*"error":"\([a-z]*\)".*/\1/p' "$1" | sort | uniq -c | sed 's/^ *//'
}
npu-run -q "$model" --inputs "$inputs" --verify cpu --each --isolate >each
echo "exit $?"
rows each
grep -o '"results": .*' each
# With weights of float16 the first group cannot be as exact as this asks for.
mlp=$TESTDATA/models/small/mlp
npu-run -q "$mlp.json" --inputs "$mlp.inputs.safetensors" --verify cpu --bisect --reduce part.json --precision f16 --rtol 1e-6 --atol 1e-7 2>messages >found
echo "exit $?"
sed -n 's/.*\(the error begins in group .*\) on npu.*/\1/p' messages
rows found
ls part.*
npu-run -q part.json --inputs part.inputs.safetensors --expect part.outputs.safetensors >/dev/null
echo "exit $? in float32"
npu-run -q part.json --inputs part.inputs.safetensors --expect part.outputs.safetensors --precision f16 --rtol 1e-6 --atol 1e-7 >/dev/null 2>&1
echo "exit $? in float16"
npu-run -q "$model" --inputs "$inputs" --tap 'conv2d*' --outputs tapped.safetensors --verify cpu >tapped
echo "exit $?"
sed -n '/"outputs"/,/\]/p' tapped | grep -o '"name":"[a-z0-9_]*"' | sort | uniq -c | sed 's/^ *//'
grep -a -c conv2d_5 tapped.safetensors
# What is in memory comes out of the program as it is compiled; what is within a group becomes an output.
sed -n '/"taps"/,/\]/p' tapped | grep -o '"from":"[a-z ]*"' | sort | uniq -c | sed 's/^ *//'
npu-run -q "$model" --inputs "$inputs" --tap 'relu*' --outputs relus.safetensors --verify cpu >tapped
echo "exit $?"
sed -n '/"taps"/,/\]/p' tapped | grep -o '"from":"[a-z ]*"' | sort | uniq -c | sed 's/^ *//'
# What is known of the document is said once, although it is compiled again; a device without taps is known before.
npu-tag "$model" | npu-fuse | npu-partition -o placed.json
for devices in npu cpu; do
  [ $devices = npu ] || npu-tag --devices cpu "$model" | npu-partition -o placed.json
  npu-run -v placed.json --target host --devices $devices --inputs "$inputs" --tap 'conv2d*' --tap relu_ 2>messages |
    sed -n '/"taps"/,/\]/p' | grep -o '"from":"[a-z ]*"' | sort | uniq -c | sed 's/^ *//'
  grep -o 'warning: --devices is ignored.*' messages
  grep -c 'compiled again' messages
done
try_silent npu-run "$model" --inputs "$inputs" --tap 'zzz*'
try_silent npu-run "$model" --inputs "$inputs" --each
try_silent npu-run "$model" --inputs "$inputs" --verify cpu --each --bisect
npu-compile -q "$model" --no-cache -o model.npub
try_silent npu-run model.npub --inputs "$inputs" --tap conv2d
npu-run -q model.npub --inputs "$inputs" --tap 'relu*' --outputs bundled.safetensors >tapped
echo "exit $?"
cmp relus.safetensors bundled.safetensors
npu-run -q model.npub --inputs "$inputs" --weights "$TESTDATA/models/small/residual.safetensors" --verify cpu --each >each
echo "exit $?"
rows each
