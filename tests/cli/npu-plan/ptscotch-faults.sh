# SPDX-License-Identifier: Apache-2.0
# PT-Scotch fails in one process of three: the others do not wait for it, and it says why.
. "$CASES/lib.sh"
need_mpi
if [ ! -e "$transports/npu_partitioner_ptscotch.so" ]; then
  echo "skipped: PT-Scotch is not built in (Debian package libptscotch-dev)"
  exit 77
fi
shims=$(cd "$transports/../test-shims" && pwd)
cp "$TESTDATA"/gnn/* .
input="--model graphsage.json --profile profile.json --devices cpu,npu --select greedy --pad 16"
for call in numSizeof contextInit contextBindDgraph; do
  for rank in 0 1; do
    for method in ptscotch auto; do
      echo "$call in process $rank, --partitioner $method:"
      # shellcheck disable=SC2086,SC2016 # $input; in the processes
      together 3 sh -c 'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = "$1" ]; then LD_PRELOAD=$2; export LD_PRELOAD; fi; shift 2; exec "$@"' \
        - $rank "$shims/npu_ptscotch_$call.so" npu-plan rmat.csr $input -k 4 --partitioner $method -o plan.json >out 2>err
      echo "exit $?"
      grep '^npu-plan' err | grep -v uncertain
      cat out
    done
  done
done
# What would be refused after the cut is refused before it.
# shellcheck disable=SC2086 # $input
LD_PRELOAD=$shims/npu_ptscotch_contextInit.so npu-plan rmat.csr ${input%--pad*} --pad 40000 --partitioner ptscotch 2>&1
echo "exit $?"
