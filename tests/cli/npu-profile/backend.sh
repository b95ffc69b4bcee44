# SPDX-License-Identifier: Apache-2.0
# A target that nobody wrote: what a backend says of itself and answers about nodes, and what its calls take.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/faulty-backends" ]; then cat "$CASES/npu-profile/backend.stdout"; exit; fi
NPU_BACKEND_PATH=$lib/test-backends
export NPU_BACKEND_PATH
small=$TESTDATA/models/small
# What each number comes from, of a report.
sources() { awk -F '  +' 'NR > 1 && NF >= 4 { print $1 ": " $2 ", " $4 }' "$1"; }
npu-profile --machine --backend skeleton --threads 1 --report -o target.json 2>report
echo "exit $?"
sources report
echo "the rules of the target that the skeleton comes with:"
tr -d '\n ' <target.json | grep -o '"name":"npu".*"peak_flops"' | grep -o '"ops":\[.*\],"p' | sed 's/,"p$//'
echo "a model is placed by it, and the backend takes every node that it allows:"
npu-tag -q --target ./target.json "$small/residual.json" -o tagged.json
npu-tag -q --target ./target.json --ask "$small/residual.json" -o asked.json
placement <tagged.json >tagged
placement <asked.json >asked
cmp tagged asked && grep -c ' npu' tagged
npu-partition -s contiguous tagged.json -o parts.json
npu-run parts.json --random-inputs 1 --verify cpu >run.json
echo "exit $? $(comparison verify <run.json)"
echo "two devices, with copies of their own:"
npu-profile --machine --backend skeleton-queue --report -o queue.json 2>report
echo "exit $?"
sources report | grep -v "arithmetic\|memory\|node"
grep -o '"instance": *"[a-z0-9:-]*"' queue.json
npu-tag -q --target ./queue.json --force npu1=relu "$small/residual.json" | npu-partition >plan.json && echo "planned"
echo "a backend that cannot be asked compiles:"
NPU_BACKEND_PATH=$lib/faulty-backends CHECK_FAULT=no-copy npu-profile --machine --backend skeleton-queue --report -o compiled.json 2>report
sources report | grep ": ops"
for target in queue compiled; do tr -d '\n ' <$target.json | sed 's/"peak/\
&/g' | grep -o '"ops":\[.*' | sort -u >$target.ops; done
cmp queue.ops compiled.ops && echo "with the same rules"
echo "what cannot be:"
try npu-profile --backend skeleton
try npu-profile --machine --backend nobody | sed 's/ is in none of.*//'
try npu-profile --machine --backend skeleton --target tpu
try npu-profile --machine --backend skeleton "$small/residual.json"
NPU_BACKEND_PATH=$lib/faulty-backends CHECK_FAULT=absent try npu-profile --machine --backend skeleton-queue
