# SPDX-License-Identifier: Apache-2.0
# Every malformed safetensors file is refused with a message that names file and place.
. "$CASES/lib.sh"
refuse_all "$TESTDATA/bad/safetensors/" "$TESTDATA"/bad/safetensors/*.safetensors -- \
  npu-run "$CASES/npu-run/two_inputs.json" --random-inputs 0 --inputs {}
