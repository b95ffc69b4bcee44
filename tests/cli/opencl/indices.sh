# SPDX-License-Identifier: Apache-2.0
# An index outside its dimension ends the run with the node's name, where it is read and where it is written; the next run
# on the same program is right.
. "$CASES/lib.sh"
need_opencl 2
npu-tag --target opencl "$CASES/opencl/indices.json" | npu-fuse | npu-partition >plan.json
run() {
  npu-run plan.json --random-inputs 0 --inputs read=read.npy --inputs written=written.npy --verify cpu "$@" >report 2>message
  echo "exit $? $(comparison verify <report)"
  cat message
}
numbers read 0 4 -1 -5
numbers written 4 4 0 -5
run
run --bench 3
numbers read 0 1 2 5
run
numbers read 0 1 2 -6
run
numbers read 0 4 -1 -5
numbers written 0 1 5 2
run
npu-compile plan.json -o model.npub
npu-run model.npub --random-inputs 0 --inputs read=read.npy --inputs written=written.npy >report
echo "exit $?"
