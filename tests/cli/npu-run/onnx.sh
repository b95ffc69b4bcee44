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
echo "== TensorProto files"
npu-run --no-cache sub/mlp.onnx --inputs "$in" --outputs y.pb >report
npu-run --no-cache sub/mlp.onnx --inputs "$in" --expect y.pb >report && comparison expect <report
try_silent npu-run --no-cache sub/mlp.onnx --inputs z=y.pb
echo "== through a pipe, and cut"
npu-tag <sub/mlp.onnx | grep -c '"weights_map"'
head -c 5000 sub/mlp.onnx >cut.onnx
try_silent npu-tag cut.onnx
