# SPDX-License-Identifier: Apache-2.0
# bf16 reports its error against f32, and the error stays small.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
npu-compile --precision bf16 --report "$small/bert_tiny.json" -o m.npub --assert 'worst_relative_error<=0.02' 2>report
echo "exit $?"
sed -n 's/^\(worst relative error\).*/\1/p' report
npu-compile --info m.npub | grep '"precision": '
npu-run m.npub --inputs "$small/bert_tiny.inputs.safetensors" --expect "$small/bert_tiny.outputs.safetensors" >report
echo "exit $?"
comparison expect <report
grep '"precision"' report
try_silent npu-run m.npub --random-inputs 0 --precision f32
npu-tag "$small/mlp.json" | npu-partition | npu-run --random-inputs 0 --precision bf16 --report 2>message >report
echo "exit $?: $(grep -c worst_relative_error report)"
# What it is computed in is the CPU's to say.
npu-compile --precision bf16 --report "$small/mlp.json" -o m.npub 2>report
sed -n 's/^precision *bf16, computed in \(bfloat16\|float32\)$/one of both/p' report
