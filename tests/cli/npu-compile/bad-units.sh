# SPDX-License-Identifier: Apache-2.0
# What a folder of units is refused for, and what npu-compile refuses to do with a plan.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
cp "$TESTDATA/models/small/mlp.json" .
plan() { npu-plan -q graph.mtx --profile profile.json --devices cpu,npu "$@"; }
plan --pad 16 --model graphsage.json -k 3 -o plan.json
npu-compile plan.json --no-cache -o units
run() {
  echo "\$ npu-run $*"
  npu-run "$@" --features x.npy --outputs out.npy >out 2>err
  echo "exit $?"
  # Backends have their versions and machines in there, and in keys.
  sed "s/ ('[^)]*)/ (...)/; s/found 'x[0-9a-f]*'/found 'x...'/" err
  [ -s out ] && echo "WROTE OUTPUT"
  rm -f out.npy
}
run plan.json --units missing
run plan.json --units units --precision bf16
run plan.json --units units --device cpu=onednn
plan --pad 16 --model graphsage.json -k 2 -o other.json
run other.json --units units
plan --pad 16 --model gcn.json -k 3 -o other.json
run other.json --units units
plan --pad 32 --model graphsage.json -k 3 -o other.json
run other.json --units units
cp graphsage.safetensors other.safetensors
printf '\001' | dd of=other.safetensors bs=1 seek="$(($(wc -c <other.safetensors) - 3))" conv=notrunc 2>/dev/null
run plan.json --units units --weights other.safetensors

# Damage, and an index that somebody has written.
change() {
  rm -rf changed
  cp -r units changed
  sed "$1" units/index.json >changed/index.json
  cmp -s units/index.json changed/index.json && echo "NOTHING CHANGED"
  echo "# $1"
  run plan.json --units changed
}
change 's/"fingerprint": *"[^"]*"/"fingerprint": "another"/'
change 's/"unit": *"cpu/"unit": "..\/cpu/'
change 's/"key": *"./"key": "x/'
change 's/"key": *"[0-9a-f]\{8\}/"key": "01234567/'
change 's/"xxh3": *"[0-9a-f]\{8\}/"xxh3": "01234567/'
change 's/"owned": *[0-9]*/"owned": -1/'
change 's/"units": *\[/"units": [], "more": [/'
change 's/"version": *1,/"version": 2,/'
rm -rf changed
cp -r units changed
for bundle in changed/*.npub; do
  printf '\377' | dd of="$bundle" bs=1 seek=4200 conv=notrunc 2>/dev/null
done
run plan.json --units changed 2>&1 | sed 's|changed/[^ :]*npub|changed/UNIT|'
rm changed/*.npub
run plan.json --units changed 2>&1 | sed 's|changed/[^ :]*npub|changed/UNIT|'

# npu-compile
try npu-compile plan.json
try npu-compile plan.json -o units
try npu-compile plan.json -o plan.json
try npu-compile plan.json -o nowhere/units
try npu-compile plan.json -o new --random-weights 1
try npu-compile plan.json -o new --quantize int8 --calibrate x.npy
try npu-compile plan.json -o new --device npu
try npu-compile plan.json -o new --device npu=missing 2>&1 | sed 's/ (.*//'
try npu-compile mlp.json -o new --device cpu=aten
try npu-run mlp.json --random-inputs 1 --units units
sed 's/"model_hash": *"./"model_hash": "x/' plan.json >changed.json
try npu-compile changed.json -o new
ls -d new* 2>/dev/null
exit 0
