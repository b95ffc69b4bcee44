# SPDX-License-Identifier: Apache-2.0
# Every malformed .npy file is refused with a message that names the file.
. "$CASES/lib.sh"
refuse_all "$TESTDATA/bad/npy/" "$TESTDATA"/bad/npy/*.npy -- \
  npu-run "$CASES/npu-run/two_inputs.json" --random-inputs 0 --inputs x={}
