# SPDX-License-Identifier: Apache-2.0
# Groups that mincut moves to a device with other patterns: a note, and none after fusing for that device.
. "$CASES/lib.sh"
npu-tag --target trio "$TESTDATA/models/mobilenet_v2.json" | npu-fuse -o fused.json
try npu-partition -s mincut fused.json -o first.json
npu-fuse first.json -o again.json
try npu-partition again.json -o second.json
for plan in first.json second.json; do
  echo "$plan"
  grep -o '"pattern": *"[a-z-]*"' $plan | sort | uniq -c | sed 's/^ *//'
done
