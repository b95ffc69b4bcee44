# SPDX-License-Identifier: Apache-2.0
# Like npu-tag, npu-partition rewrites npu.weights_file so that it resolves from the output's folder.
where() { sed -n 's/.*"weights_file": "\([^"]*\)".*/\1/p'; }
mkdir -p in out/deep
npu-tag "$TESTDATA/models/small/mlp.json" -o in/tagged.json
npu-partition in/tagged.json | where
npu-partition in/tagged.json -o out/deep/plan.json && where <out/deep/plan.json
npu-tag "$TESTDATA/models/small/mlp.json" | npu-partition -o out/plan.json && where <out/plan.json
