# SPDX-License-Identifier: Apache-2.0
# Without /proc backends are found and files are written, too (libtorch alone needs it). Needs root, to unmount it.
. "$CASES/lib.sh"
if ! unshare -m sh -c 'umount -l /proc' 2>/dev/null; then
  echo "skipped: only root, with leave to make a mount namespace, can unmount /proc"
  exit 77
fi
model=$TESTDATA/models/small/mlp.json
cat >job <<X
umount -l /proc
npu-compile -q --no-cache $model -o x.npub
echo "exit \$?"
npu-run x.npub --random-inputs 0 >report
echo "exit \$?"
npu-tag --print-target | sed 's/"onednn"/"nothing"/' >nothing.json
NPU_BACKEND_PATH=nowhere npu-compile --target ./nothing.json $model -o z.npub 2>&1 | sed 's|of: [^,]*/lib/npu/backends|of: FOLDER|'
X
unshare -m sh job
npu-compile -q --no-cache "$model" -o y.npub
cmp x.npub y.npub
ls *.npub
