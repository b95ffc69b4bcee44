# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-align
try npu-align -
printf '  \n' | npu-align
