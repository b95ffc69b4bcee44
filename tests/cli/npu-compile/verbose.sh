# SPDX-License-Identifier: Apache-2.0
# Backends that were found and loaded, cache misses and hits with their reason, and what was compiled.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
NPU_LOG=device=info,cache=info,compile=info npu-compile -t host --threads 1 "$model" -o first.npub 2>log
mask_log log
echo "again"
NPU_LOG=cache=info,compile=info npu-compile -t host --threads 1 "$model" -o second.npub 2>log
mask_log log
cmp first.npub second.npub
echo "damaged"
for entry in "$XDG_CACHE_HOME"/npu/*.npublob; do printf x >>"$entry"; done
NPU_LOG=cache=info npu-compile -t host --threads 1 "$model" -o third.npub 2>log
mask_log log
echo "off"
NPU_LOG=cache=info npu-compile -t host --threads 1 --no-cache "$model" -o fourth.npub 2>log
mask_log log
echo "too small"
NPU_LOG=cache=info npu-compile -t host --threads 1 --cache-dir other --cache-limit 1 "$model" -o fifth.npub 2>log
grep -c 'exceed the limit' log
echo "why"
npu-compile -vv -t host --threads 1 "$model" -o sixth.npub 2>log
mask_log log | grep ': device: '
npu-tag --print-target --target host | sed 's/"onednn"/"nowhere"/' >nowhere.json
NPU_LOG=device=debug NPU_BACKEND_PATH=/no/such npu-compile -t ./nowhere.json "$model" -o seventh.npub 2>log
mask_log log | grep ': device: '
