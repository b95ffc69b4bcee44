# SPDX-License-Identifier: Apache-2.0
# More rows than MPI counts go in several rounds; here a round takes seven. The plan and the bits are those of one round.
. "$CASES/lib.sh"
need_mpi
cp "$TESTDATA"/gnn/* .
mkdir -p rounds/bin rounds/lib/npu/transports
cp "$(command -v npu-plan)" "$(command -v npu-run)" rounds/bin
ln -s "$(cd "$transports/../backends" && pwd)" rounds/lib/npu/backends
cp "$transports/../test-transports/npu_transport_mpi.so" rounds/lib/npu/transports
input="--model graphsage.json --profile profile.json --devices cpu,npu --select greedy --pad 16"
if [ -e "$transports/npu_partitioner_ptscotch.so" ]; then
  cp "$transports/npu_partitioner_ptscotch.so" rounds/lib/npu/transports
  for from in '' rounds/bin/; do
    # shellcheck disable=SC2086 # $input
    together 3 ${from}npu-plan -q rmat.csr $input -k 4 --partitioner ptscotch --partition-file parts -o "plan${from%%/*}.json" 2>err ||
      grep '^npu-plan' err
  done
  cmp plan.json planrounds.json || exit 1
fi
for exchange in cover features; do
  # shellcheck disable=SC2086 # $input
  npu-plan -q graph.mtx $input -k 8 --ranks 4 --exchange $exchange -o four.json
  for from in '' rounds/bin/; do
    together 4 ${from}npu-run four.json --features x.npy --threads 1 --outputs "out${from%%/*}.npy" --device=cpu=onednn >report.json 2>err ||
      grep npu-run err
    # The most rows that cross between two ranks.
    tr -d ' \n' <report.json | grep -o '"rows":[0-9]*,"planned_rows":[0-9]*}' | sort -t: -k2n | tail -n 1
  done
  cmp out.npy outrounds.npy && echo "$exchange: the same bits"
done
