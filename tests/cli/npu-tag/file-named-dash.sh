# SPDX-License-Identifier: Apache-2.0
# "-" is stdin; "./-" is a file of that name, for input and output. "--" ends the options.
cp "$TESTDATA/models/small/mlp.json" ./-
cp ./- ./--help
npu-tag ./- | sed -n 2p
npu-tag -- ./- | sed -n 2p
npu-tag -- --help | sed -n 2p
npu-tag - <./- | sed -n 2p
npu-tag - -o - <./- | sed -n 2p
npu-tag "$TESTDATA/models/small/gru.json" -o ./-
sed -n 2p ./-
