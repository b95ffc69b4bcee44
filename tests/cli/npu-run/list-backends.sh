# SPDX-License-Identifier: Apache-2.0
# Every backend that is found is listed with its devices; one that does not load, with the reason.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/test-backends" ]; then cat "$CASES/npu-run/list-backends.stdout"; exit; fi
mkdir broken
echo "no library" >broken/npu_backend_broken.so
cp "$lib/test-backends/npu_backend_skeleton.so" broken/npu_backend_other.so
cp "$lib/test-backends/npu_backend_skeleton.so" broken/
: >broken/npu_backend_UPPER.so
: >broken/other.so
NPU_BACKEND_PATH=$PWD/broken
export NPU_BACKEND_PATH
npu-run --list-backends --report 2>table >report
echo "exit $?"
# Not every build has the backend opencl.
grep -o '"backend":"[a-z]*","usable":[a-z]*' report | grep -v opencl
grep -v '"opencl"' report | grep -o '"why_not":"[^"]*"' | sed "s|/[^ ]*/broken/|./|g" | cut -c 1-120
grep -o '{"id":"skeleton:0".*' report | head -n 1 | sed 's/}\]}.*/}]}/'
awk '$1 == "skeleton" { print $1, $2, $3 }' table
echo "without any folder of one's own:"
unset NPU_BACKEND_PATH
npu-run --list-backends | grep -o '"backend": *"[a-z]*"' | tr -d ' ' | grep -v opencl
