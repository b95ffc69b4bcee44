# SPDX-License-Identifier: Apache-2.0
# npu-tag | npu-partition | npu-run: through pipes, through files and through one file in place.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
check() {
  npu-run "$@" --inputs "$small/residual.inputs.safetensors" --expect "$small/residual.outputs.safetensors" >report
  echo "exit $?, expect $(comparison expect <report), placement $(sed -n 's/.*"device":"npu".*"nodes":\([0-9]*\).*/\1/p' report | head -n 1) on npu"
}
npu-tag "$small/residual.json" --force 'cpu=aten.add*' >tagged.json
npu-partition tagged.json >plan.json
check plan.json
npu-tag "$small/residual.json" --force 'cpu=aten.add*' | npu-partition | cmp plan.json -
npu-tag --force 'cpu=aten.add*' <"$small/residual.json" | npu-partition | sed 's|residual.safetensors|testdata/models/small/residual.safetensors|' | cmp plan.json -
npu-tag "$small/residual.json" --force 'cpu=aten.add*' | npu-partition | check -
mkdir -p deep/er
npu-tag "$small/residual.json" --force 'cpu=aten.add*' -o deep/model.json
npu-partition deep/model.json -o deep/er/model.json
check deep/er/model.json
npu-partition deep/er/model.json -o deep/er/model.json
check deep/er/model.json
