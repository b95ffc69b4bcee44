# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-tag
try npu-tag -
printf '  \n' | npu-tag
