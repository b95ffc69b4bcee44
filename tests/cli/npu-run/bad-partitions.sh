# SPDX-License-Identifier: Apache-2.0
# Every inconsistent execution plan is refused before anything runs.
. "$CASES/lib.sh"
refuse_all "$TESTDATA/bad/partition/" "$TESTDATA"/bad/partition/*.json -- \
  npu-run --random-weights 0 --random-inputs 0 {}
