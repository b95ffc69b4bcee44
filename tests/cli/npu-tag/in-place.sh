# SPDX-License-Identifier: Apache-2.0
# The output may be the input: it is read in full before anything is written.
cp "$TESTDATA/models/small/gru.json" model.json
npu-tag model.json -o model.json
npu-tag "$TESTDATA/models/small/gru.json" --quiet >other.json
sed '/weights_file/d' model.json >a
sed '/weights_file/d' other.json >b
cmp a b
