# SPDX-License-Identifier: Apache-2.0
# Unknown keys do no harm, wherever they are.
. "$CASES/lib.sh"
npu-tag "$CASES/npu-tag/reasons.json" | npu-partition | npu-run --random-weights 0 --random-inputs 0 --verify cpu >report
echo "exit $?, verify $(comparison verify <report)"
