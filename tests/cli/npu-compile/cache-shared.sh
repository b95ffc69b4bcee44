# SPDX-License-Identifier: Apache-2.0
# Eight compilers at once on one folder, some of them killed: every bundle that comes out is whole,
# and so is the cache.
small=.
for name in residual mlp; do npu-tag "$TESTDATA/models/small/$name.json" | npu-partition -o $name.json; done
for name in residual mlp; do npu-compile --no-cache "$small/$name.json" -o "$name.npub"; done
compile() { npu-compile --cache-dir cache "$small/$1.json" -o "$2"; }
round=0
while [ $round -lt 6 ]; do
  round=$((round + 1))
  rm -rf cache
  pids=
  for i in 1 2 3 4 5 6 7 8; do
    name=mlp
    [ $((i % 2)) -eq 0 ] || name=residual
    (exec npu-compile --cache-dir cache "$small/$name.json" -o "out$i.npub") 2>"err$i" &
    pids="$pids $!"
  done
  set -- $pids
  sleep "0.00$round"
  kill -9 "$2" "$5" 2>/dev/null
  wait "$1" && wait "$3" && wait "$4" && wait "$6" && wait "$7" && wait "$8" || echo "a compiler failed"
  wait "$2" "$5" 2>/dev/null
  for i in 1 2 3 4 5 6 7 8; do
    name=mlp
    [ $((i % 2)) -eq 0 ] || name=residual
    case $i in 2 | 5) [ -e "out$i.npub" ] || continue ;; esac # a killed one leaves it whole or not at all
    cmp "$name.npub" "out$i.npub"
    case $i in 2 | 5) ;; *) cat "err$i" ;; esac
    rm "out$i.npub"
  done
  for name in residual mlp; do
    compile $name again.npub
    cmp $name.npub again.npub
    npu-compile --cache-dir cache --assert 'cache_misses==0' "$small/$name.json" -o again.npub
    cmp $name.npub again.npub
  done
done
echo "$round rounds"
