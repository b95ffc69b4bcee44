# SPDX-License-Identifier: Apache-2.0
# The table of the model zoo, by the rules of the TX8 compiler and by those of the target host: conversions and bytes of
# both algorithms. The optimal one is never worse.
row() {
  for algorithm in greedy optimal; do
    npu-align -a $algorithm "$2" >out.json 2>err.txt || { cat err.txt; return; }
    eval "c_$algorithm=$(grep -o '"metrics":{"conversions":[0-9]*\|"metrics": {"conversions":[0-9]*' out.json | grep -o '[0-9]*$')"
    eval "b_$algorithm=$(grep -o '"to_nalign":[0-9]*,"conversion_bytes":[0-9]*' out.json | head -n 1 | grep -o '[0-9]*$')"
  done
  echo "$1 greedy $c_greedy ($b_greedy) optimal $c_optimal ($b_optimal)"
  [ "$c_optimal" -le "$c_greedy" ] || echo "WORSE"
}
for model in resnet18 resnet50 mobilenet_v2 inception_v3 vit_b_16 bert_base; do
  row "$model bare:" "$TESTDATA/models/$model.json"
  npu-tag "$TESTDATA/models/$model.json" | npu-partition >part.json
  row "$model host:" part.json
done
