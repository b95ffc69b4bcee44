# SPDX-License-Identifier: Apache-2.0
# "-" is stdin; "./-" is a file of that name, for input and output. "--" ends the options.
cp "$TESTDATA/models/small/mlp.json" ./-
cp ./- ./--help
npu-fuse ./- | sed -n 2p
npu-fuse -- ./- | sed -n 2p
npu-fuse -- --help | sed -n 2p
npu-fuse - <./- | sed -n 2p
npu-fuse - -o - <./- | sed -n 2p
npu-fuse "$TESTDATA/models/small/gru.json" -o ./-
sed -n 2p ./-
