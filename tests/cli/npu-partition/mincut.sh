# SPDX-License-Identifier: Apache-2.0
# The least predicted time on real models, proved: the bound is the plan's own time.
mincut() {
  model=$1
  shift
  npu-tag --target pytorch-apple "$TESTDATA/models/$model.json" "$@" >tagged.json
  npu-partition --strategy mincut tagged.json >plan.json
  npu-partition --verify plan.json >checked
  . "$CASES/lib.sh"
  printf '%s %s: %s partitions, %s tensors, %s bytes, %s us of %s us, gap %s\n' "$model" "$*" \
    "$(number partitions <plan.json)" "$(number copied_tensors <plan.json)" \
    "$(number copied_bytes <plan.json)" "$(number predicted_us <plan.json)" \
    "$(number all_cpu_us <plan.json)" "$(number gap <plan.json)"
  cat checked
}
mincut mobilenet_v2
mincut resnet50 --force 'cpu=aten.add_.*'
mincut inception_v3
mincut inception_v3 --force 'cpu=aten.cat.*'
