# SPDX-License-Identifier: Apache-2.0
# Devices of a target in another order, and without some: the document has no others.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
show() {
  sed 's/"device": "/\n&/g' | sed -n 's/^"device": "\([^"]*\)".*/\1/p' | sort | uniq -c | sed 's/^ *//'
}
for options in "" "--devices cpu,npu" "--devices cpu" "--exclude-device npu" "--devices npu,cpu --exclude-device npu"; do
  echo "== $options"
  # shellcheck disable=SC2086 # several words
  npu-tag $options "$model" >tagged.json || echo "exit $?"
  show <tagged.json
  npu-partition tagged.json >plan.json && echo "$(number partitions <plan.json) partitions"
done
try_silent npu-tag --devices tpu "$model"
try_silent npu-tag --devices npu,npu "$model"
try_silent npu-tag --exclude-device npu --exclude-device cpu "$model"
