# SPDX-License-Identifier: Apache-2.0
# The cases of npu-backend(3) that need few kernels; scripts/check/opencl.sh runs all of them.
. "$CASES/lib.sh"
need_opencl 2
cases=
for case in 1 2 3 4 5 8 9 10 11 12 13 14 15 16 17 18 19 20 23 24 25 27 29 33 34 38; do cases="$cases --case $case"; done
# shellcheck disable=SC2086 # options
npu-run --check-backend opencl --quick $cases --report 2>table >report
echo "exit $?"
grep ' fail ' table
tail -n 1 table
