# SPDX-License-Identifier: Apache-2.0
# npu-compile --tune measures tiles and keeps them in a file: the next compile measures nothing, takes them, and is kept in
# the cache by what the file says. A file that is damaged, of another version or with sizes that no kernel has is refused.
. "$CASES/lib.sh"
need_opencl
npu-tag --target opencl "$CASES/opencl/product.json" | npu-fuse | npu-partition >plan.json
compile() {
  npu-compile plan.json --random-weights 0 --cache-dir cache --tune tuning.json --report -o model.npub 2>table
  echo "exit $? $(grep '^tuned' table), $(awk '$1 == "cache" { print $1, $2, $3, $4, $5 }' table)"
}
compile
# The key has the kernel's sizes, and the sizes are among those that were tried.
tr -d ' \n' <tuning.json | grep -o '"productfloat32b1m3n8k24nt":\[[0-9,]*\]' | sed 's/\[[34],\(32\|64\),64,1,1\]/SIZES/'
cp tuning.json first.json
compile
compile
cmp first.json tuning.json && echo "the file is as before"
npu-run model.npub --random-inputs 0 --verify cpu >report
echo "exit $? $(comparison verify <report)"

sed 's/[34], *$/4,/; s/\[[34], *\(32\|64\)/[4,16/' first.json | tr -d '\n' | sed 's/\[ *[34], *[0-9]*,/[4,16,/' >tuning.json
compile
npu-run model.npub --random-inputs 0 --verify cpu >report
echo "exit $? $(comparison verify <report)"

sed 's/"version": 1/"version": 9/' first.json >tuning.json
try_silent npu-compile plan.json --random-weights 0 --tune tuning.json -o model.npub
tr -d '\n' <first.json | sed 's/\[ *[34],/[5,/; s/1, *1 *\]/3, 1]/' >tuning.json
npu-compile plan.json --random-weights 0 --tune tuning.json -o refused.npub 2>message
echo "exit $?"
grep -o "tuning of .* on this device" message
tr -d '\n' <first.json | sed 's/\[ *[34],/[0,/' >tuning.json
npu-compile plan.json --random-weights 0 --tune tuning.json -o refused.npub 2>message
echo "exit $?"
sed 's/opencl [^/]*nt:/…/; s,/devices/.*/0:,PLACE:,' message
ls
