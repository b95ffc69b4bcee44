# SPDX-License-Identifier: Apache-2.0
# A document with float16 tensors runs on npu, with the kernels that it has in float32, and writes float16.
. "$CASES/lib.sh"
for model in resnet18 mobilenet_v2; do
  sed 's/float32/float16/g' "$TESTDATA/models/$model.json" >half.json
  npu-tag half.json | npu-fuse >half.fused.json
  npu-tag "$TESTDATA/models/$model.json" | npu-fuse >full.fused.json
  for file in half full; do
    npu-fuse --assert 'kernels>0' --report $file.fused.json 2>&1 >/dev/null | grep launches >$file.kernels
    grep -c '"device": "npu"' $file.fused.json >>$file.kernels
  done
  echo "$model: the kernels of float32: $(cmp -s half.kernels full.kernels && echo yes || echo no)"
  npu-partition half.fused.json |
    npu-run --random-weights 1 --random-inputs 1 --outputs y.safetensors --verify cpu >report
  echo "exit $?, verify $(comparison verify <report), $(head -c 200 y.safetensors | grep -ao '"dtype":"[A-Z0-9]*"')"
done
echo "a conversion rounds, whatever stands behind it:"
cat >cast.json <<'END'
{"model_name": "cast", "graph_inputs": [{"name": "x", "shape": [4], "dtype": "float32"}],
 "graph_outputs": [{"name": "y", "shape": [4], "dtype": "float32"}], "weights": [], "nodes": [
  {"name": "h", "op_type": "aten.to.dtype", "inputs": [{"name": "x", "shape": [4], "dtype": "float32"}],
   "outputs": [{"name": "h", "shape": [4], "dtype": "float16"}], "attrs": {"dtype": "torch.float16"}},
  {"name": "y", "op_type": "aten.to.dtype", "inputs": [{"name": "h", "shape": [4], "dtype": "float16"}],
   "outputs": [{"name": "y", "shape": [4], "dtype": "float32"}], "attrs": {"dtype": "torch.float32"}}]}
END
for device in cpu npu; do
  npu-tag --devices $device cast.json | npu-partition | npu-run --random-inputs 3 --outputs $device.npy >report 2>&1
done
cmp cpu.npy npu.npy && echo "the same bytes"
