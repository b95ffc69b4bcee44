# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
mkdir folder
: >empty.json
try npu-partition missing.json
try npu-partition folder
try npu-partition empty.json
try npu-partition missing/model.json
try npu-partition empty.json/model.json
