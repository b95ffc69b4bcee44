# SPDX-License-Identifier: Apache-2.0
# npu-run -v logs every stage from reading to running.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
npu-run -v --devices cpu --threads 1 --random-inputs 0 "$model" 2>log >report.json
mask_log log
