# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
mkdir folder
: >empty.json
try npu-align missing.json
try npu-align folder
try npu-align empty.json
try npu-align empty.json/model.json
