# SPDX-License-Identifier: Apache-2.0
# f16 keeps the weights of products in float16: a bundle of half the size, whose error is reported; a weight that float16 does not hold
# and a CPU without the instructions are refused.
. "$CASES/lib.sh"
tensor() {
  echo "{\"name\": \"$1\", \"shape\": [$2, $3], \"dtype\": \"float32\"}"
}
product() { # NAME ROWS
  x=$(tensor x "$2" 256) w=$(tensor w 512 256) y=$(tensor y "$2" 512)
  cat >"$1.json" <<END
{"model_name": "$1", "graph_inputs": [$x], "graph_outputs": [$y], "weights": [$w], "nodes": [
  {"name": "product", "op_type": "aten.linear.default", "inputs": [$x, $w], "outputs": [$y], "attrs": {}}]}
END
}
product few 2
product many 40
product large 2
# The weights of the last one are up to some millions.
cat >scale.json <<END
{"model_name": "scale", "graph_inputs": [$(tensor v 512 256)], "graph_outputs": [$(tensor w 512 256)], "weights": [], "nodes": [
  {"name": "scaled", "op_type": "aten.mul.Scalar", "inputs": [$(tensor v 512 256)], "outputs": [$(tensor w 512 256)],
   "attrs": {"other": 1e6}}]}
END
npu-run -q scale.json --random-inputs 0 --outputs large.safetensors >/dev/null
# Products run on npu, which is what the option is about.
for name in few many large; do npu-tag -q $name.json | npu-partition -q -s contiguous >$name.part.json; done
for name in few many; do
  for precision in f32 f16; do
    npu-compile -q --no-cache --precision $precision --random-weights 0 $name.part.json -o $name.$precision.npub || exit
  done
  npu-compile --no-cache --precision f16 --random-weights 0 --report -v $name.part.json -o x.npub \
    --assert 'worst_relative_error<=0.005' --assert 'worst_relative_error>0' 2>report
  echo "exit $?"
  sed -n 's/^precision *//p; s/^\(worst relative error\).*/\1/p' report
  grep -q -E ' (gemv|packed-gemm|float16-gemm) ' report && echo "by a kernel of the backend's own"
  [ $(($(stat -c %s $name.f16.npub) * 10)) -lt $(($(stat -c %s $name.f32.npub) * 6)) ] && echo "half the bytes"
  npu-run -q $name.f32.npub --random-inputs 1 --outputs $name.expected.safetensors >/dev/null
  npu-run $name.f16.npub --random-inputs 1 --expect $name.expected.safetensors --rtol 1e-3 --atol 1e-2 >report
  echo "exit $?"
  comparison expect <report
  grep '"precision"' report
  for threads in 1 2; do npu-run -q $name.f16.npub --threads $threads --random-inputs 1 --outputs $threads.npy >/dev/null; done
  cmp 1.npy 2.npy && echo "the same bytes with two threads"
done
try npu-compile -q --no-cache --precision f16 --weights large.safetensors large.part.json -o large.npub
[ -e large.npub ] && echo "a bundle was left"
NPU_MAX_ISA=generic npu-compile -q --no-cache --no-fallback --precision f16 --random-weights 0 few.part.json -o few.npub
echo "exit $?"
cp "$TESTDATA"/gnn/* .
npu-plan graph.mtx --model gcn.json --profile profile.json -k 1 --pad 16 -o plan.json 2>/dev/null
try npu-run plan.json --features x.npy --precision f16
try npu-compile --precision f16 plan.json -o units
try npu-profile --precision f16 gcn.json
