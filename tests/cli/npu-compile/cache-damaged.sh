# SPDX-License-Identifier: Apache-2.0
# Entries that are truncated, changed or not entries at all are compiled again and replaced.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
compile() {
  for name in mlp residual depthwise; do
    npu-compile "$small/$name.json" --cache-dir cache -o "$1-$name.npub" --report 2>&1 >/dev/null
  done | sed -n 's/^cache *//p' | sort | uniq -c
}
compile good
for fault in cut empty changed text swapped; do
  for entry in cache/*.npublob; do
    case $fault in
      cut) head -c 5000 "$entry" >short && cp short "$entry" ;;
      empty) : >"$entry" ;;
      changed) size=$(wc -c <"$entry"); head -c $((size - 3)) "$entry" >short; printf abc >>short; cp short "$entry" ;;
      text) echo "not an entry" >"$entry" ;;
      swapped) cp "$(ls cache/*.npublob | head -n 1)" swap; cp swap "$entry" ;;
    esac
  done
  echo "$fault:"
  compile again
  for name in mlp residual depthwise; do cmp "good-$name.npub" "again-$name.npub"; done
  compile again
done
