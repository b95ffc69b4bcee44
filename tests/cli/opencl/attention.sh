# SPDX-License-Identifier: Apache-2.0
# Attention over a cache that is written out, with a window, capped scores and sinks: one kernel, beside that of the positions, which
# gives what the CPU gives.
. "$CASES/lib.sh"
need_opencl 2
npu-tag --target opencl "$CASES/opencl/attention.json" | npu-fuse | npu-partition >plan.json
npu-run plan.json --random-inputs 1 --verify cpu --rtol 1e-4 --atol 1e-5 >report
echo "exit $? $(comparison verify <report)"
npu-compile --no-cache plan.json -o attention.npub --assert 'splits==0' && npu-compile --info attention.npub | grep -o '"nodes":\[[^]]*\]'
