# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-fuse
try npu-fuse -
printf '  \n' | npu-fuse
