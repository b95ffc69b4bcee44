# SPDX-License-Identifier: Apache-2.0
# If the drawing cannot be written, nothing is.
. "$CASES/lib.sh"
mkdir folder
try npu-align "$TESTDATA/models/small/mlp.json" --dot folder
try npu-align "$TESTDATA/models/small/mlp.json" --dot missing/plan.dot
try npu-align "$TESTDATA/models/small/mlp.json" --dot
ls
