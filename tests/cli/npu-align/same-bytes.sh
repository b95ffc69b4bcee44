# SPDX-License-Identifier: Apache-2.0
# Same input, same bytes: on repetition, from stdin, through -o, and when run on its own output, whatever
# options ran in between; bare, tagged and partitioned.
check() {
  for algorithm in optimal greedy; do
    npu-align -a $algorithm model.json >first.json
    npu-align -a $algorithm <model.json | cmp first.json -
    npu-align -a $algorithm model.json -o second.json
    cmp first.json second.json
    npu-align -a $algorithm first.json | cmp first.json -
    npu-align -a greedy first.json | npu-align -w bytes | npu-align -w time | npu-align -a $algorithm | cmp first.json -
  done
}
for name in residual inception multi_output squeeze_excite encoder dtypes lstm empty; do
  cp "$TESTDATA/models/small/$name.json" model.json
  check
  npu-tag --force 'cpu=aten.[as]*' "$TESTDATA/models/small/$name.json" --quiet >model.json
  check
  npu-partition model.json >plan.json
  mv plan.json model.json
  check
done
