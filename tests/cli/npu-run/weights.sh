# SPDX-License-Identifier: Apache-2.0
# --weights overrides the document's file; --random-weights needs none; both may be given.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
run() {
  npu-run "$@" --inputs "$small/tied_weights.inputs.safetensors" --expect "$small/tied_weights.outputs.safetensors" 2>&1 >report | sed "s/; the worst is.*//"
  echo "expect $(comparison expect <report)"
}
sed 's/tied_weights.safetensors/missing.safetensors/' "$small/tied_weights.json" >model.json
run model.json --weights "$small/tied_weights.safetensors"
run model.json --random-weights 0
run model.json --random-weights 0 --weights "$small/tied_weights.safetensors"
