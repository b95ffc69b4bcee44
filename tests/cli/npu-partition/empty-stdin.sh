# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-partition
try npu-partition -
printf '  \n' | npu-partition
