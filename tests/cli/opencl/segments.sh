# SPDX-License-Identifier: Apache-2.0
# Aggregation over edges on the OpenCL device: what the CPU gives, also for a node without edges, with one kernel for each with
# what follows it. Edges outside end the run with the node's name.
. "$CASES/lib.sh"
need_opencl 3
npu-tag --target opencl "$CASES/opencl/segments.json" | npu-fuse | npu-partition >plan.json
run() {
  npu-run plan.json --random-inputs 3 --inputs offsets=offsets.npy --inputs sources=sources.npy --verify cpu >report 2>message
  echo "exit $? $(comparison verify <report)"
}
numbers offsets 0 4 4 5 9
numbers sources 0 4 1 1 3 2 0 4 3
run
tr -d ' ' <plan.json | grep -o '"device":"[a-z]*"' | sort -u
npu-compile plan.json -o model.npub --report 2>table
awk '$2 == "gpu" && $3 == "opencl" { print $5, "kernels" }' table
numbers sources 0 4 1 1 3 2 0 5 3
run
cat message
