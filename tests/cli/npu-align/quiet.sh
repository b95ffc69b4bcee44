# SPDX-License-Identifier: Apache-2.0
# -q keeps errors; the warnings are about targets that cannot be used.
. "$CASES/lib.sh"
npu-tag --target "$CASES/npu-tag/small_target.json" "$CASES/npu-tag/reasons.json" >tagged.json
try_silent npu-align tagged.json
try_silent npu-align -q tagged.json
try_silent npu-align --target host tagged.json
