# SPDX-License-Identifier: Apache-2.0
npu-tag "$TESTDATA/models/small/mlp.json" >./-
cp ./- ./--help
npu-partition ./- | sed -n 2p
npu-partition -- --help | sed -n 2p
npu-partition - -o - <./- | sed -n 2p
npu-partition ./- -o ./-
grep -c '"partition":' ./-
