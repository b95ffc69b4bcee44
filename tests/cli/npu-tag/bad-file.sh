# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
mkdir folder
: >empty.json
try npu-tag missing.json
try npu-tag folder
try npu-tag empty.json
try npu-tag missing/model.json
try npu-tag empty.json/model.json
