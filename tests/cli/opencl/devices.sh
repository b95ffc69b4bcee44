# SPDX-License-Identifier: Apache-2.0
# Two devices in one run, chosen by their ids: each has its part, and what goes from one to the other goes through the host.
# The trace shows the kernels of both when they ran, by the devices' clocks. An id that no device has is refused.
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
# Each kernel lies within its partition, and behind the one whose result it reads, give or take what the clock may be off. Where other
# work stops a thread between a kernel and the look at the clock, that is more than the clock says: such a run is repeated.
trace_faults() {
  npu-run plan.json --random-inputs 1 --trace trace.json >report
  tr -d '\n ' <trace.json | sed 's/{"name"/\
&/g' | awk '
    function value(key,  text) {
      if (!match($0, "\"" key "\":[0-9.e+-]+")) return -1
      text = substr($0, RSTART, RLENGTH)
      sub(/.*:/, "", text)
      return text + 0
    }
    /"cat":"partition"/ { begin = value("ts"); end = begin + value("dur") }
    /"cat":"node"/ && /"clock_error_us"/ {
      ++nodes
      error = value("clock_error_us")
      if (error > 10000) print "the clock is off by", error, "us"
      if (value("dur") <= 0) print "a node without a time"
      if (value("ts") + error + 1 < begin || value("ts") + value("dur") > end + error + 1) print "outside of its partition:", $0
      if (value("ts") + error + 1 < last) print "before the node that it reads:", $0
      last = value("ts") + value("dur") - error
    }
    END { print nodes + 0, "nodes on clocks of devices" }'
}
for _ in 1 2 3; do
  trace_faults >faults
  [ "$(wc -l <faults)" -gt 1 ] || break
done
cat faults
target opencl:77
plan
npu-run plan.json --random-inputs 1 >report 2>message
echo "exit $?"
grep -o "opencl:77.*" message | head -n 1
