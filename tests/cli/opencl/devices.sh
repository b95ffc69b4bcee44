# SPDX-License-Identifier: Apache-2.0
# Two devices in one run, chosen by their ids: each has its part, and what goes from one to the other goes through the host.
# An id that no device has is refused.
. "$CASES/lib.sh"
POCL_DEVICES='pthread basic'
export POCL_DEVICES
need_opencl 2
if ! grep -q '"id":"opencl:1".*"usable":true' backends; then
  echo "skipped: there is one OpenCL device"
  exit 77
fi
# target ID: npu is opencl:0, npu2 that device.
target() {
  vendor_target opencl | sed '/"npu",/s/"opencl"/&, "options": {"instance": "opencl:0"}/
    /"npu2",/s/"opencl"/&, "options": {"instance": "'"$1"'"}/' >target.json
}
plan() {
  npu-tag --target ./target.json --force npu=first --force npu2=middle --force cpu=last "$CASES/opencl/two_inputs.json" |
    npu-fuse | npu-partition >plan.json
}
target opencl:1
plan
for way in '' --no-overlap; do
  # shellcheck disable=SC2086 # an option or none
  npu-run plan.json --random-inputs 1 --verify cpu --bench 5 $way >report
  echo "exit $? $(comparison verify <report)"
done
grep -o '"kind":"partition","id":[0-9]*,"device":"[a-z0-9]*"' report
target opencl:77
plan
npu-run plan.json --random-inputs 1 >report 2>message
echo "exit $?"
grep -o "opencl:77.*" message | head -n 1
