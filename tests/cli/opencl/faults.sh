# SPDX-License-Identifier: Apache-2.0
# A driver whose calls fail: no memory, a device that is lost, builds that end with the process. Nothing is left over.
. "$CASES/lib.sh"
need_opencl many
shim=$(cd "$(dirname "$(command -v npu-run)")/../lib/npu/test-shims" && pwd)/npu_opencl_faults.so
small=$TESTDATA/models/small
npu-tag --target opencl "$small/mlp.json" | npu-fuse | npu-partition >mlp.json
# run FAULT OPTION...: the model, on a driver with that fault.
run() {
  echo "$1:"
  fault=$1
  shift
  rm -f counts
  LD_PRELOAD=$shim NPU_TEST_CL_FAIL=${fault%none} NPU_TEST_CL_COUNTS=counts npu-run mlp.json --weights "$small/mlp.safetensors" \
    --inputs "$small/mlp.inputs.safetensors" --expect "$small/mlp.outputs.safetensors" --rtol 1e-3 --atol 1e-4 "$@" \
    >report 2>messages
  echo "exit $? $(comparison expect <report) $(grep -o '"recovered": *[1-9][0-9]*' report)"
  sed 's/needed [0-9.]* [kM]*B, there are [0-9.]* [kMGT]*B/needed N B, there are N B/' messages
  if [ -e counts ]; then grep -v 'left 0$' counts; fi
}
# A compile starts each kernel once, with an event; runs need none.
npu-run -q mlp.json --weights "$small/mlp.safetensors" --random-inputs 0 >report
run none
cp counts once
run none --bench 10000
sed 's/made [0-9]* //' counts >many.counts
sed 's/made [0-9]* //' once | cmp - many.counts && echo "10,000 runs: as much as one"
run none --bench 100 --in-flight 3
run none --trace trace.json
for fault in clCreateBuffer:1:0:-4 clCreateBuffer:3:0:-61 clEnqueueNDRangeKernel:2:2:-4 clFinish:1:1:-5 \
  clEnqueueNDRangeKernel:3:3:-2 clFinish:2:2:-36 clEnqueueReadBuffer:1:1:-1121 clEnqueueNDRangeKernel:3:0:-2 \
  clEnqueueWriteBuffer:1:1:-30 clCreateContext:1:0:-6 clCreateCommandQueue:1:0:-6 clCreateKernel:2:2:-46 \
  clCreateProgramWithBinary:1:0:-42; do
  run $fault --bench 3
done

# A device that is lost in the middle of a plan is taken out.
cp "$TESTDATA"/gnn/* .
npu-plan -q graph.mtx --model gcn.json --target trio --profile profile.json --pad 16 -k 3 -o plan.json
for fault in none clEnqueueNDRangeKernel:3:0:-2; do
  rm -f counts
  LD_PRELOAD=$shim NPU_TEST_CL_FAIL=${fault%none} NPU_TEST_CL_COUNTS=counts npu-run plan.json --target trio --features x.npy \
    --expect gcn.expected.npy --rtol 1e-3 --atol 1e-4 --bench 20 >report 2>messages
  echo "plan: exit $? $(comparison comparison <report)"
  cat messages
  [ "$(number reexecuted <report)" -gt 0 ] && echo "others took over"
  grep -v 'left 0$' counts
done

# Killed while the driver compiles, here at a place that is known and there at some: no output, and a cache that is sound.
LD_PRELOAD=$shim NPU_TEST_CL_HANG=building npu-compile mlp.json --weights "$small/mlp.safetensors" --cache-dir cache -o killed.npub &
tries=0
while [ ! -e building ] && [ $tries -lt 600 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
kill -9 $!
wait $! 2>/dev/null
echo "killed: exit $?"
POCL_CACHE_DIR=$(pwd)/cut
export POCL_CACHE_DIR
mkdir cut
for seconds in 0.2 0.4 0.6 0.8; do
  timeout -s KILL $seconds npu-compile mlp.json --weights "$small/mlp.safetensors" --cache-dir "cache$seconds" -o killed.npub 2>/dev/null
  rm -f killed.npub
done
ls -A cache
npu-compile mlp.json --weights "$small/mlp.safetensors" --cache-dir cache -o mlp.npub && ls cache | sed 's/^[0-9a-f]\{32\}/KEY/' | sort -u
npu-run mlp.npub --inputs "$small/mlp.inputs.safetensors" --expect "$small/mlp.outputs.safetensors" --rtol 1e-3 --atol 1e-4 >report
echo "exit $? $(comparison expect <report)"
