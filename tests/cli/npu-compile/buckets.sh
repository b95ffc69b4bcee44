# SPDX-License-Identifier: Apache-2.0
# A template is compiled for several choices of its sizes into one bundle.
. "$CASES/lib.sh"
rows=$CASES/npu-compile/rows.json
compile="npu-compile -q --devices npu --random-weights 0"
$compile --buckets S=8,4 --buckets B=2,1 --bucket B=1,S=32 "$rows" -o rows.npub \
  --assert 'entries==5' --assert 'weights_copies==1' --assert 'partitions==5'
echo "exit $?"
npu-compile --info rows.npub >info
grep -o '"name":"B=[^"]*"' info | paste -sd' '
grep -c '"weights"' info
npu-compile --info --report rows.npub 2>&1 >/dev/null | sed -n '/^entry/,/^$/s/  .*//p'
echo "in another order, and with a size bound:"
$compile --bucket S=32,B=1 --buckets B=1,2 --buckets S=4,8 "$rows" | cmp - rows.npub && echo "same bytes"
$compile --bind B=1 --buckets S=8 "$rows" -o one.npub && npu-compile --info one.npub | grep -o '"name":"S=[^"]*"'
echo "the best sizes for some lengths:"
printf '10\n10\n10\n20\n500\n' >lengths
$compile --bind B=1 --buckets S=auto:2 --lengths lengths "$rows" -o auto.npub --assert 'padded_share<0.5'
npu-compile --info auto.npub | grep -o '"name":"S=[^"]*"'
echo "smaller ranges of a size:"
$compile --bind B=1 --bind S=8..48:8 --buckets S=16,40 "$rows" -o steps.npub && echo "exit $?"
for range in S=8..48:8,S=12 S=8..48:8,S=56 S=3..7:8,S=8 S=600..700,S=600 S=8..,S=8 T=1..2,S=8; do
  try $compile --bind B=1 --bind "${range%,*}" --buckets "${range#*,}" "$rows" -o bad.npub
done
try npu-tag --bind S=4..8 "$rows"
try $compile --bind B=1 --bind S=1..64 --bind S=1..32 --buckets S=8 "$rows" -o bad.npub
echo "what is no choice:"
for choice in S=4,B=1 S=0 S=513 T=3 S=x S= S=4,4 S=auto:2; do
  try $compile --bind B=1 --buckets "$choice" "$rows" -o bad.npub
done
try $compile --bucket S=4 "$rows" -o bad.npub
try $compile --buckets S=4 --buckets S=8 "$rows" -o bad.npub
try $compile --bucket B=1,S=4 --buckets B=1 --buckets S=4 "$rows" -o bad.npub
try $compile --bind B=1 --bind S=4 --buckets S=4 "$rows" -o bad.npub
try $compile --buckets S=4 "$TESTDATA/models/small/mlp.json" -o bad.npub
try $compile --buckets S=4 rows.npub -o bad.npub
try $compile --lengths lengths --bucket B=1,S=4 "$rows" -o bad.npub
printf '10\nten\n' >lengths
try $compile --bind B=1 --buckets S=auto:2 --lengths lengths "$rows" -o bad.npub
[ -e bad.npub ] && echo "a bundle was written"
