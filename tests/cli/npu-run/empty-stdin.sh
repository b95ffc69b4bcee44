. "$CASES/lib.sh"
try npu-run
try npu-run -
printf '  \n' | npu-run
