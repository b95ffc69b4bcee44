# SPDX-License-Identifier: Apache-2.0
# A graph without nodes is a document like any other.
npu-fuse "$TESTDATA/models/small/empty.json" --assert 'nodes==0' --assert 'kernels==0' --report
