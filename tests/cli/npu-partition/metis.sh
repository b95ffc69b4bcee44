# SPDX-License-Identifier: Apache-2.0
# Parts of equal work: cut before and after the repair, balance, and a plain split beside them.
. "$CASES/lib.sh"
for model in resnet18 inception_v3 bert_base mobilenet_v2; do
  npu-tag "$TESTDATA/models/$model.json" >tagged.json
  for k in 1 2 4 6; do
    npu-partition --strategy metis -k $k --imbalance 0.2 --assert 'imbalance<=0.2' tagged.json >plan.json
    npu-partition --strategy metis -k $k --imbalance 0.2 tagged.json | cmp - plan.json
    npu-partition --verify plan.json >checked || cat checked
    if [ "$(number cut_bytes <plan.json)" -gt "$(number contiguous_cut_bytes <plan.json)" ] &&
      npu-partition --strategy metis -k $k --imbalance 0.2 --assert 'contiguous_imbalance<=0.2' tagged.json >plan.json 2>message; then
      echo "$model: a plain split into $k is better"
    fi
  done
done
npu-tag "$TESTDATA/models/resnet18.json" --force 'cpu=aten.add_.*' | npu-partition --strategy metis -k 3 --imbalance 0.2 >plan.json
echo "$(number parts <plan.json) parts"
npu-partition --verify plan.json >checked
