# SPDX-License-Identifier: Apache-2.0
sed "s/, \"weights_file\": \"[^\"]*\"//" "$TESTDATA/models/small/empty.json" >./-
cp ./- ./--help
npu-run ./- --random-inputs 0 | sed -n 2p
npu-run --random-inputs 0 -- --help | sed -n 2p
npu-run - --random-inputs 0 <./- | sed -n 2p
