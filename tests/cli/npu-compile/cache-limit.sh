# SPDX-License-Identifier: Apache-2.0
# --cache-limit keeps the most recently used entries.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
compile() { npu-compile --cache-dir cache --cache-limit 120k --random-weights "$1" "$small/mlp.json" -o m.npub --report 2>&1 >/dev/null | sed -n 's/^cache *//p'; }
i=0
while [ $i -lt 30 ]; do i=$((i + 1)); compile $i >/dev/null; compile 1 >last; done
cat last
total=$(cat cache/* | wc -c)
[ "$total" -le 120000 ] && echo "within the limit"
[ "$(ls cache | wc -l)" -ge 2 ] && echo "with some entries"
echo "the first is long gone:"
compile 2
