# SPDX-License-Identifier: Apache-2.0
# ONNX files: every program takes them, results are PyTorch's, weights stay in the file, and .pb files are inputs and
# outputs.
. "$CASES/lib.sh"
DATA=$CASES/../../testdata
cp "$DATA/onnx/mlp.onnx" .
in=$DATA/models/small/mlp.inputs.safetensors
out=$DATA/models/small/mlp.outputs.safetensors
run() { npu-run --no-cache "$@" --inputs "$in" --expect "$out" >report && comparison expect <report; }
comparison() { grep -o "\"ok\": *true" | sort -u; }
echo "== as it is, and through the pipeline"
run mlp.onnx
npu-tag mlp.onnx | npu-fuse | npu-partition | npu-align >plan.json
run plan.json
grep -c '"offset"' plan.json
echo "== a bundle needs the model no longer"
npu-compile --no-cache mlp.onnx -o mlp.npub
mkdir sub
mv mlp.onnx sub/
run mlp.npub
try_silent npu-run --no-cache plan.json --inputs "$in"
echo "== in another folder"
npu-tag sub/mlp.onnx -o sub/tagged.json
grep -o '"path": *"[^"]*"' sub/tagged.json
npu-partition sub/tagged.json -o plan.json
grep -o '"path": *"[^"]*"' plan.json
run plan.json
echo "== weights of their own, and the model is not needed"
cp sub/mlp.onnx gone.onnx
mkdir apart
npu-tag gone.onnx --weights-out apart/w.safetensors | npu-partition -o sub/apart.json
rm gone.onnx
grep -o '"weights_[a-z]*": *"[^"]*"' sub/apart.json
run sub/apart.json
try_silent npu-tag "$DATA/models/small/mlp.json" --weights-out none.safetensors
ls none.safetensors 2>/dev/null
echo "== a model without weights, as ONNX and as a document"
tensor() { echo "{\"name\": \"$1\", \"shape\": [4], \"dtype\": \"float32\"}"; }
echo "{\"model_name\": \"bare\", \"graph_inputs\": [$(tensor x)], \"graph_outputs\": [$(tensor y)], \"weights\": [], \"nodes\": [
 {\"name\": \"y\", \"op_type\": \"aten.relu.default\", \"inputs\": [$(tensor x)], \"outputs\": [$(tensor y)]}]}" >bare.json
npu-align -q --onnx-qdq bare.onnx bare.json >/dev/null
for model in bare.onnx bare.json; do
  npu-tag $model --weights-out bare.safetensors -o tagged.json
  echo "exit $?, $(wc -c <bare.safetensors) bytes"
  grep -o '"weights_[a-z]*": *"[^"]*"' tagged.json
  npu-partition tagged.json | npu-run -q --no-cache --random-inputs 1 >/dev/null || echo "not run"
  rm bare.safetensors
done
echo "== TensorProto files"
npu-run --no-cache sub/mlp.onnx --inputs "$in" --outputs y.pb >report
npu-run --no-cache sub/mlp.onnx --inputs "$in" --expect y.pb >report && comparison expect <report
try_silent npu-run --no-cache sub/mlp.onnx --inputs z=y.pb
echo "== through a pipe, and cut"
npu-tag <sub/mlp.onnx | grep -c '"weights_map"'
head -c 5000 sub/mlp.onnx >cut.onnx
try_silent npu-tag cut.onnx
