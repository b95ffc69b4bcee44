# SPDX-License-Identifier: Apache-2.0
# Every execution plan that does not hold together is refused before anything runs.
. "$CASES/lib.sh"
refuse_all "$TESTDATA/bad/partition/" "$TESTDATA"/bad/partition/*.json -- \
  npu-run --random-weights 0 --random-inputs 0 {}
