. "$CASES/lib.sh"
try npu-tag
try npu-tag -
printf '  \n' | npu-tag
