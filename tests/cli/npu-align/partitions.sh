# SPDX-License-Identifier: Apache-2.0
# A partitioned document: only npu partitions are aligned, transfers are row-major, names and steps stay.
. "$CASES/lib.sh"
. "$CASES/npu-align/walk.sh.inc"
npu-tag "$TESTDATA/models/small/residual.json" --force 'cpu=aten.add*' | npu-partition >doc.json
both
# Names of one list may stand in another order: that of production.
plan() { sed -n '/^    "partition": {/,/^    }/p' "$1" | grep -o '"id":[0-9]*,"device":"[a-z]*"\|"inputs":\[[^]]*\]\|"outputs":\[[^]]*\]\|{"kind".*}' | tr ',' '\n' | tr -d '[]' | sed 's/.*:\("[^"]*"\)$/\1/' | sort; }
plan doc.json >before
plan out.json >after
diff before after && echo same plan
