# SPDX-License-Identifier: Apache-2.0
# Plans on three devices, with splits, pipelines, padding and several parts, equal PyTorch's results.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
for model in graphsage gcn gat; do
  for k in 1 5; do
    # Libtorch takes most of a second to load.
    on='--device cpu=onednn --device gpu=onednn'
    [ $k = 1 ] || on='--device gpu=aten'
    npu-plan graph.mtx --model $model.json --profile profile.json -k $k --pad 16 -o plan.json 2>/dev/null
    # shellcheck disable=SC2086 # words
    npu-run plan.json --features x.npy $on --expect $model.expected.npy --outputs out.npy \
      --trace trace.json >report.json
    echo "$model $k: exit $?"
    grep -c '"cat":"measured"' trace.json | sed 's/^[1-9][0-9]*$/traced/'
    # Beside what each slice took stands what the plan predicted.
    grep '"cat":"measured"' trace.json | grep -vc '"measured_ms":[0-9.e-]*,"predicted_ms":[0-9]'
  done
done
npu-run plan.json --features x.npy --device gpu=aten --expect gcn.expected.npy >report.json 2>err
echo "exit $?"
cat err
try_silent npu-run plan.json --features x.npy
try_silent npu-run plan.json --features missing.npy --device gpu=aten
try_silent npu-run graphsage.json --features x.npy
sed 's/^0$/1/' plan.part >other.part
sed 's/plan.part/other.part/' plan.json >other.json
try_silent npu-run other.json --features x.npy --device gpu=aten
