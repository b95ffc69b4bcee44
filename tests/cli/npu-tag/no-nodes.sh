# SPDX-License-Identifier: Apache-2.0
# A graph without nodes is a document like any other.
npu-tag "$TESTDATA/models/small/empty.json" --target "$CASES/npu-tag/small_target.json" \
  --assert 'nodes==0' --assert 'coverage_nodes==1' --report
