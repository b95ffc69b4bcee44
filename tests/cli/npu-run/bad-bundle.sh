# SPDX-License-Identifier: Apache-2.0
# Every malformed bundle is refused with a message that names the file and the place.
. "$CASES/lib.sh"
refuse_all "$TESTDATA/bad/bundle/" "$TESTDATA"/bad/bundle/*.npub -- npu-run {} --random-inputs 0
for file in "$TESTDATA"/bad/bundle/*.npub; do
  npu-compile --info "$file" >info 2>message && echo "$file is described"
done
echo "damage of a real one:"
npu-compile -q "$TESTDATA/models/small/mlp.json" -o m.npub
size=$(wc -c <m.npub)
for cut in 0 8 64 4096 $((size / 2)) $((size - 1)); do
  head -c "$cut" m.npub >cut.npub
  npu-run cut.npub --random-inputs 0 >out 2>message
  echo "exit $? $(sed 's/[0-9][0-9]* bytes, its header says [0-9]*/N bytes, its header says M/' message)"
done
echo "one byte changed, where the blob begins and among its weights:"
begin=$(npu-compile --info m.npub | sed -n 's/.*"name":"partition 0","offset":\([0-9]*\).*/\1/p')
for place in $begin $((size - 4096)); do
  cp m.npub changed.npub
  printf '\245' | dd of=changed.npub bs=1 seek="$place" conv=notrunc status=none
  npu-run changed.npub --random-inputs 0 >out 2>message
  echo "exit $? $(cat message)"
done
npu-run --no-verify-digests changed.npub --random-inputs 0 >out 2>message
echo "not verified: exit $? $(cat message)"
