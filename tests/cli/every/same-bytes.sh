# SPDX-License-Identifier: Apache-2.0
# Same input, same bytes: on repetition, from stdin, through -o, and when run on its own output, whatever options ran in
# between. npu-compile has more to hold (its same-bytes.sh); the other programs measure.
. "$CASES/lib.sh"
# Prints what differs; the result stays as first.json.
#   same_bytes FILE COMMAND...
same_bytes() {
  file=$1
  shift
  "$@" "$file" >first.json
  "$@" <"$file" | cmp -s first.json - || echo "$* <$name: differs"
  "$@" "$file" -o second.json
  cmp -s first.json second.json || echo "$* $name -o: differs"
  "$@" first.json | cmp -s first.json - || echo "$* of its own output for $name: differs"
}
for name in mlp gru multi_output lifted_constants dtypes empty; do
  cp "$TESTDATA/models/small/$name.json" model.json
  same_bytes model.json npu-tag
  mv first.json tagged.json
  same_bytes tagged.json npu-tag --keep-tags
  same_bytes tagged.json npu-fuse
  npu-tag --force 'cpu=aten.[abc]*' --quiet model.json >tagged.json
  same_bytes tagged.json npu-partition -s contiguous
  same_bytes tagged.json npu-partition -s convex
done
for name in self_attention in_place_view; do
  npu-tag "$TESTDATA/models/small/$name.json" >tagged.json
  same_bytes tagged.json npu-fuse
done
align() {
  for algorithm in optimal greedy; do
    same_bytes "$1" npu-align -a $algorithm
    npu-align -a greedy first.json | npu-align -w bytes | npu-align -w time | npu-align -a $algorithm | cmp -s first.json - ||
      echo "npu-align -a $algorithm of the output of others for $name: differs"
  done
}
for name in residual inception multi_output squeeze_excite encoder dtypes lstm empty; do
  cp "$TESTDATA/models/small/$name.json" model.json
  align model.json
  npu-tag --force 'cpu=aten.[as]*' --quiet model.json >tagged.json
  align tagged.json
  npu-partition tagged.json >plan.json
  align plan.json
done
