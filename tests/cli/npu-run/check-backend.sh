# SPDX-License-Identifier: Apache-2.0
# The cases of npu-backend(3): the skeleton passes all that apply, and for each fault of a backend the case that is there
# for it finds it. A crash or a hang of one case leaves the others alone.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/faulty-backends" ]; then cat "$CASES/npu-run/check-backend.stdout"; exit; fi
NPU_BACKEND_PATH=$lib/test-backends
export NPU_BACKEND_PATH
npu-run --check-backend skeleton --quick --report 2>table >report
echo "exit $?"
tail -n 1 table
grep -c '"result":"pass"' report
grep -o '"case":19.*' report | cut -d '}' -f 1
echo "one case, in this process:"
npu-run --check-backend skeleton --quick --case 3 | tr -s ' \n' ' '
echo
# As many random nodes as are asked for: more than are drawn otherwise, and fewer.
checks() { npu-run --check-backend skeleton --case 6 "$@" | tr -d ' \n' | sed 's/.*"checks":\([0-9]*\).*/\1/'; }
usual=$(checks --quick)
[ "$(checks --random-nodes 5)" -lt "$usual" ] && [ "$(checks --random-nodes 900)" -gt "$usual" ] && echo "as many nodes as asked for"
NPU_BACKEND_PATH=$lib/faulty-backends
# "FAULT: CASE: REMARK" of the first of two cases that fails with a fault.
#   found FAULT CASE CASE OPTION...
found() {
  fault=$1
  first=$2
  second=$3
  shift 3
  CHECK_FAULT=$fault npu-run --check-backend skeleton --quick --case "$first" --case "$second" "$@" --report 2>&1 >report |
    sed -n "s/ *\([0-9]*\) .* fail  *[0-9]*  /$fault: \1: /p" | cut -c 1-140 | sort -u | head -n 1
}
found new-table 1 2
found equal-sizes 1 2
for fault in writes-behind equal-desc wide-verdict; do found $fault 2 3; done
for fault in no-fingerprint unknown-number other-name vain-storage; do found $fault 1 3; done
found leaks-file 3 4
found ignores-options 4 5
found vain-arithmetic 5 6
for fault in wrong-values half; do found $fault 5 6 | sed 's/of float32.*//'; done
for fault in takes-all vague any-alpha; do found $fault 5 7; done
found unsupported 7 8
for fault in unlike-blobs blob-of-process; do found $fault 8 9; done
found crashes-on-blob 9 10
found other-arch 9 10
found fails-on-blob 9 10 | sed 's/from [0-9]*/from N/'
for fault in adds-up half changes-input; do found $fault 7 11; done
found leaks 11 12 | sed 's/[0-9]* KiB/N KiB/'
for fault in counts-nothing wild-reads any-shape; do found $fault 9 13; done
for fault in no-text touches-result; do found $fault 9 14; done
found null-free 9 15
for fault in prints rounds; do found $fault 7 16; done
found one-run 9 17
found ignores-limit 17 18
found forgets-memory 18 19
found never-stops 19 25
for fault in backwards outside; do found $fault 28 29; done
for fault in says-yes moody tired answer-of-process; do found $fault 29 30; done
for fault in late-taps any-tap; do found $fault 35 36; done
for fault in vain-layouts loose-layouts; do found $fault 36 37; done
for fault in other-clock uneven-clock late-times; do found $fault 37 38 | sed 's/is -*[0-9.]* ns/is N ns/'; done
for fault in long-seconds wide-weights; do found $fault 38 39 | sed 's/[0-9.]* ms/N ms/g'; done
echo "a case that goes on is not ended, one that hangs is:"
CHECK_FAULT=slow-on-blob npu-run --check-backend skeleton --quick --case 9 --case 10 --case-limit 2 >report
echo "exit $?"
found hangs-on-blob 9 10 --case-limit 2
echo "a fault of the whole check ends it with status 4, and with the document:"
CHECK_FAULT=half npu-run --check-backend skeleton --quick >report
echo "exit $?, $(grep -c '"result":"fail"' report) fail"
try npu-run --check-backend nobody
try npu-run --check-backend skeleton --case 99
try npu-run --quick
