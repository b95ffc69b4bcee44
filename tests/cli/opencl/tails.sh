# SPDX-License-Identifier: Apache-2.0
# Rows behind the valid ones on the OpenCL device: zero, the last valid row and minus infinity, for one valid row, some and all.
. "$CASES/lib.sh"
need_opencl many
npu-tag --target opencl "$CASES/opencl/tails.json" | npu-fuse | npu-partition >plan.json
tr -d ' ' <plan.json | grep -o '"device":"[a-z]*"' | sort -u
for rows in 1 2 3; do
  numbers n "$rows"
  LC_ALL=C sed 's/(1,), /(), /; s/ $/   /' n.npy >scalar.npy
  npu-run plan.json --random-inputs 3 --inputs n=scalar.npy --verify cpu >report
  echo "exit $? $(comparison verify <report)"
done
