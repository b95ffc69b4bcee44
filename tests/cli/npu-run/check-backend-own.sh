# SPDX-License-Identifier: Apache-2.0
# The backends of npu-tools pass the cases that apply to them.
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/test-backends" ]; then cat "$CASES/npu-run/check-backend-own.stdout"; exit; fi
NPU_BACKEND_PATH=$lib/test-backends
export NPU_BACKEND_PATH
for backend in onednn aten; do
  npu-run --check-backend $backend --quick --report 2>table >report
  echo "$backend: exit $?, $(tail -n 1 table)"
  awk '$0 ~ / fail  /' table
done
