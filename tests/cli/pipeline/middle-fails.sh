# SPDX-License-Identifier: Apache-2.0
# A program that fails writes nothing; the next one says so. Every exit code is seen.
. "$CASES/lib.sh"
pipeline() { # three commands; plain sh has no pipefail
  { sh -c "$1"; echo "first: exit $?" >first; } | { sh -c "$2"; echo "second: exit $?" >second; } |
    { sh -c "$3"; echo "third: exit $?" >third; }
  cat first second third
}
model=$TESTDATA/models/small/empty.json
echo "none:"
pipeline "npu-tag $model" npu-partition 'npu-run --random-inputs 0 >report'
echo "the first:"
pipeline "npu-tag missing.json" npu-partition 'npu-run --random-inputs 0' 2>&1
echo "the middle one:"
pipeline "npu-tag $model" 'npu-partition --strategy best' 'npu-run --random-inputs 0' 2>&1
echo "the middle one's assertion, which keeps the document:"
pipeline "npu-tag $model" "npu-partition --assert 'partitions>0'" 'npu-run --random-inputs 0 >report' 2>&1
echo "the last one:"
pipeline "npu-tag $model" npu-partition 'npu-run' 2>&1
echo "left out:"
pipeline "npu-tag $CASES/npu-run/two_inputs.json" cat 'npu-run --random-inputs 0' 2>&1
