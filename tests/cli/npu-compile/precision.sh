# SPDX-License-Identifier: Apache-2.0
# bf16 reports its error against f32, and the error stays small.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
npu-compile --precision bf16 --report "$small/bert_tiny.json" -o m.npub --assert 'worst_relative_error<=0.02' 2>report
echo "exit $?"
sed -n 's/^precision *//p; s/^\(worst relative error\).*/\1/p' report
npu-compile --info m.npub | grep '"precision": '
npu-run m.npub --inputs "$small/bert_tiny.inputs.safetensors" --expect "$small/bert_tiny.outputs.safetensors" >report
echo "exit $?"
comparison expect <report
grep '"precision"' report
try_silent npu-run m.npub --random-inputs 0 --precision f32
# Depending on this CPU, either bf16 with its error against f32, or a refusal that says why.
npu-tag "$small/mlp.json" | npu-partition | npu-run --random-inputs 0 --precision bf16 --report 2>message >report
case $?:$(grep -c worst_relative_error report):$(grep -c 'precision bf16 needs a CPU with AVX-512' message):$(grep -c -w -m 1 avx512bw /proc/cpuinfo) in
  0:1:0:[1-9]* | 1:0:1:0) echo "as this CPU allows" ;;
  *) cat message report ;;
esac
