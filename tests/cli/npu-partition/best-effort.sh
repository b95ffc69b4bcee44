# SPDX-License-Identifier: Apache-2.0
# Where no parts are as even as --imbalance asks, --best-effort takes the most even ones and says how even they are.
. "$CASES/lib.sh"
npu-tag "$TESTDATA/models/resnet18.json" >tagged.json
try_silent npu-partition -s metis -k 4 tagged.json
try_silent npu-partition -s metis -k 4 --best-effort tagged.json -o plan.json
echo "imbalance $(number imbalance <plan.json)"
try npu-partition --verify plan.json
# What is possible is as it was.
npu-partition -s metis -k 4 --imbalance 0.2 tagged.json >without.json
npu-partition -s metis -k 4 --imbalance 0.2 --best-effort tagged.json | cmp - without.json
