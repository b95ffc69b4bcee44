# SPDX-License-Identifier: Apache-2.0
# What support for a missing operator would gain.
npu-tag --target pytorch-apple "$TESTDATA/models/mobilenet_v2.json" >tagged.json
npu-partition --strategy mincut --what-if tagged.json >plan.json
grep -A 20 '"what_if"' plan.json
npu-tag --target pytorch-apple "$TESTDATA/models/bert_base.json" --force 'cpu=aten.reshape*' >bert.json
npu-partition --strategy mincut --what-if bert.json >plan.json
npu-partition --what-if -q bert.json >quiet.json
npu-tag --force 'npu=*' "$TESTDATA/models/resnet18.json" | npu-partition --what-if >none.json
