# SPDX-License-Identifier: Apache-2.0
# A backend computes fusion groups as they are; one that no kernel computes is split, and the report says why.
model=$TESTDATA/models/small/mlp.json
npu-tag "$model" >tagged.json
compile() {
  npu-compile --no-cache --random-weights 1 --report --assert "splits==$1" --assert "predicted_kernels==$2" -o out.npub "$3" \
    2>&1 | grep -E 'is split|does not hold'
}
echo '$ the patterns of the device'
npu-fuse tagged.json >own.json
compile 0 8 own.json
echo '$ --patterns linear-act'
npu-fuse --patterns linear-act tagged.json >other.json
compile 2 6 other.json
echo '$ no groups'
compile 0 8 tagged.json
