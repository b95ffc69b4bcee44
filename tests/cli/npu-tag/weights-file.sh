# SPDX-License-Identifier: Apache-2.0
# npu.weights_file is rewritten so that it resolves from the output's place: relative to -o's
# folder, or to the working directory for stdout. Absolute paths stay.
where() { sed -n 's/.*"weights_file": "\([^"]*\)".*/\1/p'; }
small=$TESTDATA/models/small
mkdir -p out/deep
npu-tag "$small/mlp.json" | where
npu-tag "$small/mlp.json" -o out/a.json && where <out/a.json
npu-tag "$small/mlp.json" -o out/deep/b.json && where <out/deep/b.json
npu-tag out/deep/b.json | where
npu-tag out/deep/b.json -o out/c.json && where <out/c.json
npu-tag out/a.json -o out/deep/../d.json && where <out/d.json
echo "from stdin, so relative to the working directory:"
(cd out && npu-tag <a.json | where)
sed 's|"weights_file": "[^"]*"|"weights_file": "./w.safetensors"|' "$small/mlp.json" | npu-tag -o out/e.json && where <out/e.json
echo "absolute:"
sed 's|"weights_file": "[^"]*"|"weights_file": "/data/w.safetensors"|' "$small/mlp.json" >abs.json
npu-tag abs.json -o out/f.json && where <out/f.json
echo "none:"
npu-tag "$TESTDATA/models/resnet18.json" | where
