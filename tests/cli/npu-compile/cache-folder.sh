# SPDX-License-Identifier: Apache-2.0
# A folder that cannot be created or written, and a full disk, only cause a warning.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
npu-compile --no-cache "$model" -o good.npub
echo file >file
echo "in a file:"
try npu-compile --cache-dir file/cache "$model" -o a.npub
cmp good.npub a.npub
echo "a device that is full:"
# No file may grow beyond 4096 bytes; the bundle goes to a pipe, which has no such limit.
(trap '' XFSZ; ulimit -f 8; npu-compile --cache-dir full "$model" 2>&1 >/dev/null | cat
 npu-compile -q --cache-dir full "$model" | cmp good.npub - && echo same)
ls full
echo "nothing temporary is left, and the next one fills it:"
npu-compile --cache-dir full --assert 'cache_misses==1' "$model" -o a.npub
npu-compile --cache-dir full --assert 'cache_hits==1' "$model" -o a.npub
echo "quiet:"
try npu-compile -q --cache-dir file/cache "$model" -o a.npub
