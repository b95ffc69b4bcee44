# SPDX-License-Identifier: Apache-2.0
# A frontend that breaks the rules of npu/frontend.h, one after the other: the program says which, and ends with status 1.
. "$CASES/lib.sh"
NPU_FRONTEND_PATH=$(dirname "$(command -v npu-tag)")/../lib/npu/test-frontends/liar
export NPU_FRONTEND_PATH
if [ ! -d "$NPU_FRONTEND_PATH" ]; then cat "$CASES/npu-tag/bad-frontend.stdout"; exit; fi
printf 'liar\nnone\nsixteen bytes...' >model.liar
npu-tag --devices cpu model.liar | grep -c weights_map
for rule in weights-null weights-count weights-stride weights-far-stride weight-no-name weight-empty-name weight-name \
  weight-terminal-name weight-of-none weight-twice weight-file weight-offset weight-bytes weight-encoding weight-data messages-null \
  messages-stride message-no-text document-null document-size document-utf8 file-no-name; do
  printf 'liar\n%s\nsixteen bytes...' $rule >$rule.liar
  try npu-tag $rule.liar
done
printf 'liar\nerror-without-end\n' >long.liar
npu-tag long.liar 2>&1 | wc -c
for rule in null utf8 terminal json long; do
  echo "LIAR_OPS=$rule"
  LIAR_OPS=$rule
  export LIAR_OPS
  try npu-tag --list-ops --frontend liar
done
