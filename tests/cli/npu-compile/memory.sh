# SPDX-License-Identifier: Apache-2.0
# --memory-limit: a model that needs more is not written; a table says how much more.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
sizes() { sed 's/[0-9.]* [kMG]*B/SIZE/g; s/  */ /g; s/ $//'; }
try npu-compile --memory-limit 100 "$model" --random-weights 0 -o m.npub | sizes
ls
npu-compile --memory-limit 1G --report "$model" --random-weights 0 -o m.npub 2>&1 | sed -n '/^memory /,/^$/p' | sizes
try npu-compile "$model" --random-weights 0 -o m.npub --assert 'memory_bytes>100' --assert 'memory_bytes<1000' |
  sed 's/is [0-9]*$/is N/'
