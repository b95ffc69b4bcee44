# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
npu-run --random-inputs 0 --assert 'transfers==0' "$TESTDATA/models/small/empty.json" >report
echo "exit $?"
npu-run --inputs "$TESTDATA/models/small/empty.inputs.safetensors" "$TESTDATA/models/small/empty.json" >report
echo "exit $?"
