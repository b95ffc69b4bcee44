# SPDX-License-Identifier: Apache-2.0
# Options that take numbers.
. "$CASES/lib.sh"
run() { try npu-run "$CASES/npu-run/two_inputs.json" "$@"; }
run --threads -1
run --threads two
run --threads 1025
run --bench 0
run --bench -5
run --bench 1e3
run --random-inputs one
run --random-inputs -1
run --random-inputs 1.5
run --random-inputs 18446744073709551616
run --random-weights x
run --rtol tight
run --rtol -1
run --atol nan
