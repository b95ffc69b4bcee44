# SPDX-License-Identifier: Apache-2.0
# What follows from weights and constants alone is folded: it belongs to no device, cuts nothing, is computed once, and
# gives the same bits as in a run. A bundle needs no device for it.
. "$CASES/lib.sh"
model=$CASES/pipeline/constants.json
tag() {
  npu-tag --target "$CASES/pipeline/few_ops.json" "$@" "$model"
}
tag -o tagged.json
placement <tagged.json
npu-tag --target "$CASES/pipeline/few_ops.json" tagged.json | cmp tagged.json - && echo "tagged again: the same"
tag --report 2>&1 >/dev/null
npu-fuse tagged.json | npu-partition --assert partitions==1 --assert transfers==0 -o folded.json
npu-fuse --report --assert nodes_folded==6 tagged.json 2>&1 >/dev/null | grep folded
echo "not folded:"
tag --no-fold | npu-partition --assert 'partitions>1' -o plain.json
run() {
  npu-run --random-weights 1 --random-inputs 2 "$@"
}
run folded.json --outputs folded.safetensors --verify cpu --rtol 0 --atol 1e-6 >report
echo "verified on the cpu, which folds nothing: $(comparison verify <report)"
run plain.json --outputs plain.safetensors >report
cmp folded.safetensors plain.safetensors && echo "same bits"
echo "as a bundle, without a cpu:"
npu-compile --random-weights 1 --assert folded_nodes==6 --assert folded_bytes==160 folded.json -o folded.npub
mkdir -p bin lib/npu/backends
cp "$(command -v npu-run)" bin/npu-run
ln -s "$(dirname "$(dirname "$(command -v npu-run)")")/lib/npu/backends/npu_backend_onednn.so" lib/npu/backends/
bin/npu-run folded.npub --random-inputs 2 --outputs bundle.safetensors >report
cmp folded.safetensors bundle.safetensors && echo "same bits"
