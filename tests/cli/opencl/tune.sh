# SPDX-License-Identifier: Apache-2.0
# npu-compile --tune measures tiles and keeps them in a file: the next compile measures nothing, takes them, and is kept in
# the cache by what the file says. A file that is damaged, of another version or with sizes that no kernel has is refused.
. "$CASES/lib.sh"
need_opencl 3
npu-tag --target opencl "$CASES/opencl/product.json" | npu-fuse | npu-partition >plan.json
compile() {
  npu-compile plan.json --random-weights 0 --cache-dir cache --tune tuning.json --report -o model.npub 2>table
  echo "exit $? $(grep '^tuned' table), $(awk '$1 == "cache" { print $1, $2, $3, $4, $5 }' table)"
}
compile
# The key has the kernel's sizes; which sizes are the fastest, the machine says.
tr -d ' \n' <tuning.json | grep -o '"productfloat32b1m3n8k1200nt":\[[0-9,]*\]' | sed 's/\[[0-9]*\(,[0-9]*\)\{4\}\]/SIZES/'
# The measurements with other sizes of that product.
with_sizes() {
  tr -d '\n' <first.json | sed 's/\[\( *[0-9]*,\)\{4\} *[0-9]* *\]/['"$1"']/'
}
cp tuning.json first.json
compile
compile
cmp first.json tuning.json && echo "the file is as before"
npu-run model.npub --random-inputs 0 --verify cpu >report
echo "exit $? $(comparison verify <report)"

with_sizes '4, 16, 64, 1, 1' >tuning.json
compile
npu-run model.npub --random-inputs 0 --verify cpu >report
echo "exit $? $(comparison verify <report)"

sed 's/"version": 1/"version": 9/' first.json >tuning.json
try_silent npu-compile plan.json --random-weights 0 --tune tuning.json -o model.npub
with_sizes '5, 32, 64, 3, 1' >tuning.json
npu-compile plan.json --random-weights 0 --tune tuning.json -o refused.npub 2>message
echo "exit $?"
grep -o "tuning of .* on this device" message
with_sizes '0, 32, 64, 1, 1' >tuning.json
npu-compile plan.json --random-weights 0 --tune tuning.json -o refused.npub 2>message
echo "exit $?"
sed 's/opencl [^/]*nt:/…/; s,/devices/.*/0:,PLACE:,' message
[ -e refused.npub ] || echo "nothing written"

echo "entries: kernels at their sizes, those of several once"
sed 's/\[3, /["S", /; $s/}/, "npu": {"version": 1, "symbols": {"S": {"min": 1, "max": 64, "of": [["x", 0]]}}}}/' \
  "$CASES/opencl/product.json" >sizes.json
compile_entries() { npu-compile -q --target opencl --devices gpu --random-weights 0 --no-cache "$@"; }
bundle() {
  compile_entries --tune entries.json --report "$@" 2>table
  echo "exit $? $(grep '^tuned' table)"
  tr -d ' \n' <entries.json | grep -o 'm[0-9]*n8k1200nt' | sort
}
bundle --buckets S=4 --bucket S=3 sizes.json -o sizes.npub --assert 'entries==2' --assert 'weights_copies==1'
bundle --buckets S=3,4 sizes.json -o again.npub
compile_entries --buckets S=4 sizes.json -o plain.npub
for rows in 2 4; do
  npu-run plain.npub --bind S=$rows --random-inputs 0 --outputs y.safetensors >report
  npu-run sizes.npub --bind S=$rows --random-inputs 0 --expect y.safetensors >report
  echo "$rows rows: exit $? $(comparison expect <report) $(grep -o '"entry": *"[^"]*"' report)"
done
rm entries.json
bundle --entry a="$CASES/opencl/product.json" --entry b=sizes.json --buckets S=3,4 -o documents.npub
echo "programs that measured: $(npu-compile --info documents.npub | grep -c '"tuned"')"
try npu-compile --tune t.json --quantize int8 --calibrate x.npy --buckets S=3 sizes.json -o refused.npub
