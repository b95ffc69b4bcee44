# SPDX-License-Identifier: Apache-2.0
# What crosses between the devices of one machine: the fewest rows, and a check that finds changes.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
plan() { npu-plan graph.mtx --profile profile.json -k 8 --pad 16 "$@"; }
plan -q --model graphsage.json --exchange features -o features.json
plan -q --model graphsage.json -o default.json
sed 's/features.part/default.part/' features.json | cmp - default.json && echo "features alone are the default"
plan -q --model graphsage.json --exchange cover --report -o plan.json 2>&1 >/dev/null | sed -n '/^part .*sums/,$p' | sed '/^$/,$d'
cmp plan.part features.part
npu-plan --verify plan.json | grep '"ok"'
grep -c '"saved"' plan.json
plan -q --model graphsage.json --exchange cover -o plan.json --assert exchange_rows==88 --assert halo_rows==236 \
  --assert exchange_bytes==2488
echo "exit $?"
# Models that take the largest of rows, and one that does neither.
for model in gcn largest gat; do
  plan --model $model.json --exchange cover -o $model.plan.json 2>&1 | grep 'only features'
  npu-plan --verify $model.plan.json | grep '"ok"'
  grep -c '"exchange": {' $model.plan.json
done
# What --verify finds: another kind of row, one that is no edge, a row twice, a part too few, another host, other sums.
change() {
  sed "$1" plan.json >changed.json
  cmp -s plan.json changed.json && echo "nothing changed: $1"
  try npu-plan --verify changed.json
}
change 's/"cover": *"\([0-9]*\)+/"cover":"\1>/'
change 's/"cover": *"[0-9]*+/"cover":"59+/'
change 's/"rows": *\([0-9]*\), *"cover": *"\([^ ]*\) /"rows":\1,"cover":"\2 \2 /'
change 's/"cover": *"[^ ]* /"cover":"/'
change 's/"saved": *\([0-9]*\)/"saved":\11/'
change 's/"host": *"cpu"/"host":"npu"/'
change 's/"host": *"cpu"/"host":"tpu"/'
change '/^  "exchange": {/,$s/"bytes": *[1-9]/"bytes":9/'
change 's/"part": *0/"part":8/'
try npu-plan --subgraphs subgraphs.json --profile published.json --no-transfers --exchange cover
try npu-plan graph.mtx --profile profile.json --no-transfers --exchange cover
try npu-plan graph.mtx --model graphsage.json --profile profile.json --exchange both
