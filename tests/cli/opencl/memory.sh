# SPDX-License-Identifier: Apache-2.0
# A model that needs more memory than it may take ends with status 3 before it is loaded.
. "$CASES/lib.sh"
need_opencl 1
npu-tag --target opencl "$CASES/opencl/product.json" | npu-fuse | npu-partition >plan.json
npu-run plan.json --random-weights 0 --random-inputs 0 --memory-limit 1k >report 2>message
echo "exit $?"
grep -c "^npu-run: plan.json: error: device 'gpu' needs" message
