# SPDX-License-Identifier: Apache-2.0
# The programs of a plan's static device are compiled once for all processes, whatever happens to the cache.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
npu-plan graph.mtx --model graphsage.json --profile profile.json -k 5 --pad 16 -o plan.json 2>/dev/null
run() {
  echo "\$ $*"
  npu-run plan.json --features x.npy --device cpu=onednn --device gpu=onednn --expect graphsage.expected.npy "$@" >report.json
  echo "exit $?: $(number static_compiles <report.json) compiled, $(number cache_hits <report.json) from the cache"
}
run --cache-dir here
ls here | sed 's/^[0-9a-f]\{32\}/KEY/' | sort | uniq -c | tr -s ' '
run --cache-dir here
run --cache-dir here --no-cache
# The code may depend on the number of threads.
run --cache-dir here --threads 1
for entry in here/*; do
  dd if=/dev/zero of="$entry" bs=1 seek=200 count=8 conv=notrunc 2>/dev/null
done
run --cache-dir here
run --cache-dir here
run --cache-dir /dev/null/none
