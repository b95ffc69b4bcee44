# SPDX-License-Identifier: Apache-2.0
# A plan may list a tensor more than once; it is copied to a device only once, and a graph input or
# a result that several partitions read is not copied again either.
. "$CASES/lib.sh"
sed 's/"tensors": \["add"\]/"tensors": ["add", "add", "relu"]/' "$CASES/npu-run/three_steps.json" >plan.json
cmp -s plan.json "$CASES/npu-run/three_steps.json" && echo "not changed"
for model in "$CASES/npu-run/three_steps.json" plan.json; do
  npu-run "$model" --random-weights 0 --random-inputs 0 >report
  echo "$(basename "$model"): $(number transfers <report) transfers, $(number transferred_tensors <report) tensors, $(number transfer_bytes <report) bytes"
done
