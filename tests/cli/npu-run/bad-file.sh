# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
mkdir folder
: >empty.json
try npu-run missing.json
try npu-run folder
try npu-run empty.json
try npu-run missing/model.json
try npu-run empty.json/model.json
