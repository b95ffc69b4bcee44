# SPDX-License-Identifier: Apache-2.0
cp "$TESTDATA/models/small/mlp.json" ./-
cp ./- ./--help
npu-align ./- | sed -n 2p
npu-align -- --help | sed -n 2p
npu-align - -o - <./- | sed -n 2p
npu-align ./- -o ./-
grep -c '"layout":' ./-
