# SPDX-License-Identifier: Apache-2.0
# Plans for several processes: the same bits for any number of them, as many rows as planned, and what happens if one fails.
. "$CASES/lib.sh"
need_mpi
cp "$TESTDATA"/gnn/* .
# Blocks for the cpu run on onednn, since libtorch takes most of a second to load in each rank.
device=--device=cpu=onednn
whole() { npu-run "$@" $device; }
ranks() {
  count=$1
  shift
  mpirun --oversubscribe --bind-to none -n "$count" npu-run "$@" $device
}
plan() { npu-plan -q graph.mtx --profile profile.json --partitioner metis --devices cpu,npu --select greedy --pad 16 "$@"; }

for model in graphsage gcn gat; do
  for count in 1 2 4 8; do
    plan --model $model.json -k 8 --ranks $count -o plan.json
    if [ $count = 1 ]; then
      whole plan.json --features x.npy --threads 1 --outputs one.npy >report.json 2>err || cat err
      plan --model $model.json -k 8 -o whole.json
      whole whole.json --features x.npy --expect one.npy >report.json 2>err
      echo "$model without ranks: exit $?"
      continue
    fi
    ranks $count plan.json --features x.npy --threads 1 --outputs many.npy >report.json 2>err || cat err
    cmp one.npy many.npy && echo "$model on $count ranks: the same bits"
    tr -d ' \n' <report.json | sed 's/.*"ranks":{//; s/,"exchange_ms".*//'
    echo
    # Every pair sent as many rows as planned.
    tr -d ' \n' <report.json | grep -o '"rows":[0-9]*,"planned_rows":[0-9]*}' | awk -F'[:,}]' '$2 != $4'
  done
done
plan --model graphsage.json -k 8 --ranks 3 --exchange features -o plan.json
ranks 3 plan.json --features x.npy --outputs features.npy --bench 2 --report 2>&1 >report.json | grep '^3 ranks' | sed 's/, [0-9.]* ms.*//'
# On libtorch.
device=
for count in 1 2; do
  plan --model gat.json -k 8 --ranks $count -o plan.json
  ranks $count plan.json --features x.npy --threads 1 --outputs aten$count.npy >report.json 2>err || cat err
done
cmp aten1.npy aten2.npy && echo "gat on libtorch: the same bits"
device=--device=cpu=onednn

# From the binary form of the graph.
plan --model graphsage.json -k 8 --ranks 2 --csr graph.csr -o csr.json
plan --model graphsage.json -k 8 --ranks 1 -o plan.json
whole plan.json --features x.npy --threads 1 --outputs one.npy >report.json 2>err || cat err
ranks 2 csr.json --features x.npy --threads 1 --outputs many.npy >report.json 2>err || cat err
cmp one.npy many.npy && echo "from the binary form: the same bits"
cp graph.csr good.csr
printf '\377\377\377\177' | dd of=graph.csr bs=1 seek=1828 conv=notrunc 2>/dev/null
ranks 2 csr.json --features x.npy --outputs out.npy >report.json 2>err
echo "damaged: exit $?"
grep '^npu-run' err

# One rank speaks and ends with 1, and nothing is left.
complaints() { grep '^npu-run' err; }
plan --model graphsage.json -k 8 --ranks 2 -o plan.json
rm -f out.npy*
ln -s /dev/null null.npy
for words in 'plan.json --features missing.npy' 'plan.json --features graph.mtx' 'plan.json --features x.npy --expect one.npy' \
  'plan.json --features x.npy --outputs missing/out.npy' 'plan.json --features x.npy --outputs out.safetensors' \
  'plan.json --features x.npy --outputs null.npy'; do
  echo "\$ npu-run $words"
  # shellcheck disable=SC2086 # words
  ranks 2 $words >out 2>err
  echo "exit $?"
  complaints
done
for count in 1 3; do
  ranks $count plan.json --features x.npy --outputs out.npy >out 2>err
  echo "$count ranks: exit $?"
  complaints
done
try npu-run plan.json --features x.npy
ranks 2 whole.json --features x.npy >out 2>err
echo "exit $?"
complaints
(NPU_TRANSPORT_PATH=$PWD OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 npu-run plan.json --simulate >out && echo simulated)

# A rank that is killed: the others end at once with one line each, and no output is there.
plan --model graphsage.json -k 8 --ranks 4 -o plan.json
# A busy machine gets three seconds, not one, for the last words.
mpirun --oversubscribe --bind-to none --mca odls_base_sigkill_timeout 3 -n 4 npu-run plan.json --features x.npy --outputs out.npy --bench 1000000 $device >out 2>err &
launcher=$!
pids=
tries=0
# Whether all ranks are in the middle of their runs: to get there takes a fifth of this much time of a core.
run_already() {
  [ "$(echo "$pids" | wc -w)" -eq 4 ] || return 1
  for pid in $pids; do
    awk '{ exit !($14 + $15 >= 80) }' "/proc/$pid/stat" 2>/dev/null || return 1
  done
}
while ! run_already && [ $tries -lt 1200 ]; do
  sleep 0.1
  pids=$(ps -o pid= --ppid $launcher)
  tries=$((tries + 1))
done
# shellcheck disable=SC2086 # pids
set -- $pids
before=$(date +%s)
kill -9 "$3"
wait $launcher
[ $? -ne 0 ] && [ $(($(date +%s) - before)) -le 20 ] && echo "ended in time"
complaints | sort
ls out.npy* 2>/dev/null
cat out
