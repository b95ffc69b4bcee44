# SPDX-License-Identifier: Apache-2.0
# A machine without an OpenCL driver: one clear message, before anything is compiled.
. "$CASES/lib.sh"
need_opencl 0
mkdir none
OCL_ICD_VENDORS=$(pwd)/none
export OCL_ICD_VENDORS
npu-run --list-backends | grep '"opencl"' | grep -o '"why_not":"[^"]*"'
npu-tag --target opencl "$TESTDATA/models/small/mlp.json" | npu-fuse | npu-partition >plan.json
try_silent npu-run plan.json --random-weights 0 --random-inputs 0
