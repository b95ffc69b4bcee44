# SPDX-License-Identifier: Apache-2.0
# The blocks of a plan as files: a run from them compiles nothing and gives the same bits.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
plan() { npu-plan -q graph.mtx --profile profile.json --partitioner metis --pad 16 "$@"; }
compiled() { ls "$1" | sed 's/.*\.//' | sort | uniq -c | tr -s ' '; }
# shellcheck disable=SC2086 # words
run() { npu-run plan.json --features x.npy --threads 1 --no-cache $on "$@"; }
# Libtorch takes most of a second to load.
onednn='--device cpu=onednn --device gpu=onednn'
asserts="--assert units>=1 --assert static_compiles==0 --assert compile_ms==0"
for model in graphsage gcn gat; do
  on=$onednn
  [ $model != gat ] || on='--device gpu=aten'
  plan --model $model.json -k 5 -o plan.json
  # shellcheck disable=SC2086 # words
  npu-compile plan.json $on --no-cache --threads 1 -o $model.units
  echo "$model: exit $?"
  compiled $model.units
  run --outputs compiled.npy >report.json
  # shellcheck disable=SC2086 # words
  run --outputs units.npy --units $model.units $asserts >report.json && cmp compiled.npy units.npy && echo "the same bits"
done

# The same bytes again, from the cache as well; other numbers of threads run.
on=$onednn
plan --model graphsage.json -k 5 -o plan.json
# shellcheck disable=SC2086 # words
npu-compile plan.json $on --threads 1 -o first
# shellcheck disable=SC2086 # words
npu-compile plan.json $on --threads 1 -o second/ --report --assert 'units>=1' --assert 'programs>=1' \
  --assert 'blob_bytes>0' --assert 'compile_ms>=0' --assert 'static_compiles==0' --assert 'cache_hits>=1' 2>report
echo "exit $?"
sed -n 's/ \{1,\}/ /g; 1p' report
diff -r first second && diff -r first graphsage.units && echo "the same files"
# shellcheck disable=SC2086 # words
npu-run plan.json --features x.npy $on --units first --expect graphsage.expected.npy >report.json && echo "on all cores"

# A unit is a document and a bundle like others.
for document in first/npu.*.json; do
  unit=${document%.json}
  npu-run "$unit.npub" --random-inputs 1 --outputs bundle.safetensors >report.json || echo "$unit does not run"
  npu-run -q "$document" --weights graphsage.safetensors --random-inputs 1 --devices cpu --expect bundle.safetensors >report.json ||
    echo "$unit differs"
done
for bundle in first/*.npub; do
  npu-run "$bundle" --random-inputs 1 >report.json || echo "$bundle does not run"
  npu-compile --info "$bundle" >report.json || echo "$bundle is damaged"
done

# Ranks, bfloat16.
plan --model gat.json --devices cpu,npu -k 8 --ranks 4 -o ranks.json
# shellcheck disable=SC2086 # words
npu-compile ranks.json $on --no-cache -o ranks.units && compiled ranks.units
plan --model gcn.json --devices cpu,npu -k 3 --ranks 1 -o plan.json
# shellcheck disable=SC2086 # words
npu-compile plan.json $on --no-cache --threads 1 -o one.units
run --outputs compiled.npy >report.json
run --outputs units.npy --units one.units >report.json && cmp compiled.npy units.npy && echo "the same bits"
on=
plan --model gcn.json --devices cpu,npu -k 3 -o plan.json
npu-compile plan.json --precision bf16 --threads 1 -o narrow
run --precision bf16 --outputs compiled.npy >report.json 2>err
run --precision bf16 --outputs units.npy --units narrow >report.json 2>err && cmp compiled.npy units.npy && echo "the same bits"
