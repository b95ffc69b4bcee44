# SPDX-License-Identifier: Apache-2.0
# What onednn and aten hand to each other is used where it lies; a backend whose memory the host does not see has it
# copied. The results are the same.
. "$CASES/lib.sh"
npu-tag --force 'cpu=aten.max_pool2d*' "$TESTDATA/models/small/residual.json" | npu-partition >split.json
run() { npu-run "$1" --inputs "$TESTDATA/models/small/residual.inputs.safetensors" --expect "$TESTDATA/models/small/residual.outputs.safetensors" --trace trace.json; }
run split.json >report
echo "moved $(number transfer_bytes <report) bytes, copied $(number copied_bytes <report)"
grep -o '"path":"[a-z ]*"' report
comparison expect <report
grep -c '"copied_bytes":0' trace.json
# Inputs and outputs, too: of the whole document nothing is copied, whether one device runs all of it or two.
npu-run -q "$TESTDATA/models/small/residual.json" --devices npu --inputs "$TESTDATA/models/small/residual.inputs.safetensors" \
  --expect "$TESTDATA/models/small/residual.outputs.safetensors" --bench 2 >whole
grep -c '"kind":"partition"' whole
grep -oE '"kind":"(inputs|outputs)".*"path":"[a-z ]*"' whole
npu-run split.json --inputs "$TESTDATA/models/small/residual.inputs.safetensors" --report 2>&1 >/dev/null |
  grep -E 'wrapped|^copied' | sed -E 's/  +/ /g; s/[0-9.]+ ([0-9.]+ )?wrapped/T wrapped/'
