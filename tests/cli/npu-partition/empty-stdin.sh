. "$CASES/lib.sh"
try npu-partition
try npu-partition -
printf '  \n' | npu-partition
