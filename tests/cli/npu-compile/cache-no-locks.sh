# SPDX-License-Identifier: Apache-2.0
# A cache on a file system without locks and without files that have no name, as hosts of a cluster share: several
# writers of the same entries, readers meanwhile, a writer that is killed, and what it leaves behind.
. "$CASES/lib.sh"
shim=$(dirname "$(command -v npu-compile)")/../lib/npu/test-shims/npu_no_locks.so
[ -e "$shim" ] || { echo "skipped: $shim is not built"; exit 77; }
small=$TESTDATA/models/small
compile() { LD_PRELOAD=$shim npu-compile "$small/$1.json" --cache-dir cache -o "$2" --report 2>&1 >/dev/null | sed -n '/warning/p; s/^cache *//p'; }
for name in mlp residual depthwise; do npu-compile -q "$small/$name.json" --no-cache -o "good-$name.npub"; done
echo "eight writers at once:"
for writer in 1 2 3 4 5 6 7 8; do
  (for name in mlp residual depthwise; do compile $name "$writer-$name.npub" >>"log$writer"; done) &
done
wait
grep -h warning log*
for writer in 1 2 3 4 5 6 7 8; do
  for name in mlp residual depthwise; do cmp "good-$name.npub" "$writer-$name.npub"; done
done
ls cache | grep -c 'npublob$'
ls cache | grep -vc 'npublob$'
echo "all are hits:"
for name in mlp residual depthwise; do compile $name again.npub; cmp "good-$name.npub" again.npub; done
echo "writers that are killed leave nothing that is used:"
rm -r cache
for pause in 0.01 0.02 0.05 0.08 0.1; do
  LD_PRELOAD=$shim npu-compile -q "$small/residual.json" --cache-dir cache -o killed.npub &
  sleep $pause
  kill -9 $! 2>/dev/null
  wait $! 2>/dev/null
done
compile residual after.npub >/dev/null
cmp good-residual.npub after.npub
compile residual after.npub
echo "what they left is removed after a day, not before:"
: >cache/tmp-yesterday
touch -d '2 days ago' cache/tmp-yesterday
: >cache/tmp-now
touch -d '2 hours ago' cache/tmp-now
compile mlp last.npub >/dev/null
ls cache | grep '^tmp-[yn]'
