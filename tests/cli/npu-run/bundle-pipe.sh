# SPDX-License-Identifier: Apache-2.0
# A bundle or a document from a named pipe is read as from stdin; one as weights is refused at once.
. "$CASES/lib.sh"
npu-compile -q "$TESTDATA/models/small/mlp.json" -o mlp.npub
npu-tag "$TESTDATA/models/small/mlp.json" | npu-partition >mlp.json
mkfifo pipe
for file in mlp.npub mlp.json; do
  cat $file >pipe &
  npu-run --random-weights 0 --random-inputs 0 pipe | grep -c '"model": "mlp"\|"model":"mlp"'
done
cat mlp.npub >pipe &
npu-compile -q --info pipe >info.pipe
npu-compile -q --info mlp.npub | cmp - info.pipe
try npu-run --weights pipe --random-inputs 0 mlp.json
