# SPDX-License-Identifier: Apache-2.0
# Cases 23, 24, 26 to 28, 31, 32, 35 and 37 of npu-backend(3): the skeleton with queues passes every case that applies, each fault of a queue is found,
# and a backend that lists the feature without all of its functions is refused.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/faulty-backends" ]; then cat "$CASES/npu-run/check-queues.stdout"; exit; fi
NPU_BACKEND_PATH=$lib/test-backends
export NPU_BACKEND_PATH
npu-run --check-backend skeleton-queue --quick --report 2>table >report
echo "exit $?"
tail -n 1 table
grep -o '"case":\(2[34678]\|3[178]\),"title":"[a-z -]*","result":"[a-z ]*"' report
NPU_BACKEND_PATH=$lib/faulty-backends
# "FAULT: CASE: REMARK" of the first finding.
found() {
  CHECK_FAULT=$1 npu-run --check-backend skeleton-queue --quick --case "$2" --report 2>&1 >report |
    sed -n "s/ *\([0-9]*\) .* fail  *[0-9]*  /$1: \1: /p" | cut -c 1-140 | head -n 1
}
for fault in half-copy any-copy; do found $fault 23; done
for fault in early late silent unordered forgets-failure lonely careless equal-sizes twice hasty; do
  found $fault 24 | sed 's/takes [0-9]* ms/takes N ms/'
done
for fault in first-entry only-entry double-weights double-use; do found $fault 26; done
for fault in eager any-pair; do found $fault 27; done
found small-scratch 28
found any-arch 31
for fault in sticky hurried; do found $fault 35; done
found undying 32
for fault in any-layout plain-copy; do found $fault 37; done
found lacks-wait 24
CHECK_FAULT=lacks-wait npu-run --list-backends | grep -o "the backend lists[^\"]*"
