# SPDX-License-Identifier: Apache-2.0
# Whenever a compiler is ended, it leaves the old bundle or the new one, and nothing beside it.
. "$CASES/lib.sh"
model=residual.json
npu-tag "$TESTDATA/models/small/residual.json" | npu-partition -o $model
npu-compile --no-cache "$model" -o good.npub
mkdir out cache
cp good.npub out/b.npub
for signal in INT TERM HUP; do
  ended=0
  # On a busy machine, all of a round may be over before the signal, or not have begun to obey it: then another round.
  for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    for i in 0 1 2 3 4 5 6 7 8 9; do
      # A background process of sh ignores SIGINT, which env gives back.
      env --default-signal=INT npu-compile --cache-dir cache "$model" -o out/b.npub &
      if [ $((round % 2)) = 1 ]; then sleep "0.0$i"; else sleep "0.00$i"; fi
      kill -$signal $! 2>/dev/null
      wait $! 2>/dev/null
      status=$?
      [ $status -gt 128 ] && ended=$((ended + 1))
      cmp good.npub out/b.npub
    done
    [ $ended -gt 0 ] && break
  done
  [ $ended -gt 0 ] && echo "$signal: some were ended"
  ls out
  ls cache | sed '/[.]npublob$/d'
done
