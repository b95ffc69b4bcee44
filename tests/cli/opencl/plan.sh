# SPDX-License-Identifier: Apache-2.0
# A plan of a graph neural network with an OpenCL device: its blocks are one program each there, also as files, which compile
# nothing; and when the device is lost in the middle, the other one takes over.
. "$CASES/lib.sh"
need_opencl 6
shim=$(cd "$(dirname "$(command -v npu-run)")/../lib/npu/test-shims" && pwd)/npu_opencl_faults.so
cp "$TESTDATA"/gnn/* .
npu-plan -q graph.mtx --model gcn.json --target trio --profile profile.json --pad 16 -k 2 --devices gpu,cpu -o plan.json
npu-compile plan.json -o units --report 2>table
grep -c '^gpu[.].* opencl  *[0-9]*  *1 ' table
# run FAULT OPTION...: on a driver with that fault.
run() {
  fault=$1
  shift
  LD_PRELOAD=$shim NPU_TEST_CL_FAIL=${fault%none} npu-run plan.json --features x.npy --units units --expect gcn.expected.npy --rtol 1e-3 --atol 1e-4 "$@" >report 2>messages
  echo "exit $? $(comparison comparison <report)"
  cat messages
}
run none --assert 'units>=1' --assert static_compiles==0 --assert compile_ms==0 --assert 'fused_reductions>=1'
run clEnqueueNDRangeKernel:3:0:-2
[ "$(number reexecuted <report)" -gt 0 ] && echo "the other took over"
