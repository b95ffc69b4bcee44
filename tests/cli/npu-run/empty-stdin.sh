# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-run
try npu-run -
printf '  \n' | npu-run
