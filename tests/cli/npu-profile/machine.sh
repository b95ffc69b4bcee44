# SPDX-License-Identifier: Apache-2.0
# The rates of this machine: a target that every tool takes, and that keeps all that is no rate.
. "$CASES/lib.sh"
npu-profile --machine --threads 1 --report -o host.json 2>messages
echo "exit $?"
# On a busy machine there is a warning, and the target says so, too.
grep -v 'warning: other work on the machine' messages >report
echo "rates:"
awk -F '  +' 'NR > 1 && NF > 2 { sub(/ \(scaled\)/, "", $2); print $1 ": " $2 }' report
awk '/rounds$/ { print ($1 >= 3) ? "at least 3 rounds" : $0 }' report
grep -c 'rates measured on .* with 1 threads[",]' host.json
echo "the devices run what they ran:"
for device in npu cpu; do
  npu-tag --list-ops $device >before
  npu-tag --target ./host.json --list-ops $device >after
  cmp before after && echo "$device: same"
done
npu-tag --target ./host.json "$TESTDATA/models/resnet18.json" | npu-partition -s mincut -o plan.json --assert 'predicted_us>0'
echo "exit $?"
echo "what cannot be:"
npu-tag --print-target --target tpu >tpu.json
try npu-profile --machine --target ./tpu.json
try npu-profile --machine "$TESTDATA/models/resnet18.json"
try npu-profile --machine --runs 3
