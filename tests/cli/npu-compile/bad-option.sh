# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-compile --precision f8 model.json
try npu-compile --jobs -1 model.json
try npu-compile --cache-limit 8GB model.json
try npu-compile --cache-limit 99999999999999999999 model.json
try npu-compile --cache-limit '' model.json
try npu-compile --target nowhere "$TESTDATA/models/small/mlp.json"
try npu-compile --tune "$TESTDATA/models/small/mlp.json" -o bad.npub
