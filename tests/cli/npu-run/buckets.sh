# SPDX-License-Identifier: Apache-2.0
# A bundle with entries for several sizes runs the one that fits its inputs best.
. "$CASES/lib.sh"
rows=$CASES/npu-compile/rows.json
npu-compile -q --devices npu --random-weights 0 --bucket B=1,S=4 --bucket B=1,S=16 --bucket B=4,S=4 "$rows" -o rows.npub
ran() { sed -n 's/^  "\(entry\|padded_share\)": *\(.*[^,]\),*$/\1 \2/p' "$1" | paste -sd' '; }
for sizes in 'B=1 S=4' 'B=1 S=3' 'B=1 S=5' 'B=3 S=2' 'B=4 S=4'; do
  options=
  for size in $sizes; do options="$options --bind $size"; done
  npu-run rows.npub --random-inputs 1 $options --verify npu --bench 2 --outputs y.npy >report
  echo "$sizes: exit $?, verified $(comparison verify <report), $(ran report)"
done
echo "the entry's own sizes:"
npu-run rows.npub --random-inputs 1 --assert 'padded_share==0' >report; echo "exit $?, $(ran report)"
echo "as the same model at these sizes:"
npu-run rows.npub --random-inputs 1 --bind S=5 --bind B=1 --outputs a.safetensors >report
npu-run -q --devices npu "$rows" --random-weights 0 --random-inputs 1 --bind S=5 --bind B=1 --expect a.safetensors >report 2>message || cat message
echo "what does not fit:"
try_silent npu-run rows.npub --random-inputs 1 --bind S=17
try_silent npu-run rows.npub --random-inputs 1 --bind S=16 --bind B=2
try_silent npu-run rows.npub --random-inputs 1 --bind T=1
try_silent npu-run rows.npub --bind S=2
npu-compile -q --devices npu "$TESTDATA/models/small/mlp.json" -o mlp.npub
try_silent npu-run mlp.npub --random-inputs 1 --bind S=1
