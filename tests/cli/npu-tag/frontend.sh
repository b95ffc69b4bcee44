# SPDX-License-Identifier: Apache-2.0
# A frontend of somebody else: found through NPU_FRONTEND_PATH; its messages, and what it cannot do.
. "$CASES/lib.sh"
NPU_FRONTEND_PATH=$(dirname "$(command -v npu-tag)")/../lib/npu/test-frontends
export NPU_FRONTEND_PATH
if [ ! -d "$NPU_FRONTEND_PATH" ]; then cat "$CASES/npu-tag/frontend.stdout"; exit; fi
printf 'lines\naten.relu.default\naten.exp.default\n' >model.lines
npu-tag --devices cpu model.lines | grep -o '"op_type": *"[^"]*"\|"weights_map"'
npu-fuse <model.lines | grep -o '"op_type": *"[^"]*"'
printf 'lines\naten.relu.default\n\n' >bad.lines
try npu-tag bad.lines
try npu-tag --bind n=1 model.lines
try npu-tag --list-ops --frontend lines
try npu-tag --list-ops --frontend none
try npu-tag --bind n=1 "$CASES/npu-run/two_inputs.json"
echo "a frontend that is none:"
mkdir other
printf 'no library' >other/npu_frontend_other.so
NPU_FRONTEND_PATH=other
try npu-tag model.lines | sed 's/does not load: .*/does not load: .../'
