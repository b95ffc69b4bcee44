# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
mkdir folder
: >empty.json
try npu-fuse missing.json
try npu-fuse folder
try npu-fuse empty.json
try npu-fuse missing/model.json
try npu-fuse empty.json/model.json
