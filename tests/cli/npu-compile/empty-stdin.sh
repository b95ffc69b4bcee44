# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-compile
printf '  \n' | npu-compile
