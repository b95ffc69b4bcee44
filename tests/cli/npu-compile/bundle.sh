# SPDX-License-Identifier: Apache-2.0
# A bundle gives PyTorch's results, wherever it is moved and without the files it was made from.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
for name in residual bert_tiny multi_output several_outputs lifted_constants empty mlp_bf16; do
  cp "$small/$name.json" "$small/$name.safetensors" .
  npu-tag -q --force 'cpu=aten.add*' "$name.json" 2>/dev/null | npu-partition -o part.json
  npu-compile part.json -o "$name.npub" --weights "$name.safetensors"
  rm "$name.json" "$name.safetensors" part.json
  mkdir -p moved
  mv "$name.npub" moved/other
  npu-run moved/other --inputs "$small/$name.inputs.safetensors" --expect "$small/$name.outputs.safetensors" >report
  echo "$name: exit $?, expected outputs: $(comparison expect <report)"
done
