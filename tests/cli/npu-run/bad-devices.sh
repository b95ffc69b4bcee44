# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
run() { try npu-run "$CASES/npu-run/two_inputs.json" --random-inputs 0 "$@"; }
run --verify gpu
run --target nowhere
run --target missing.json
echo "tagged, but not partitioned:"
npu-tag "$CASES/npu-run/two_inputs.json" | try npu-run --random-inputs 0
