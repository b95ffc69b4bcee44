# SPDX-License-Identifier: Apache-2.0
# A partition of an earlier run is dropped; npu-tag drops groups; unknown keys stay.
model=$TESTDATA/models/small/residual.json
npu-tag "$model" | npu-partition | sed 's/"npu": {/"npu": {"note": 1, "layout": {}, /' >old.json
npu-fuse old.json >new.json
grep -c '"partition": \|"layout": ' new.json || :
grep -c '"note"' new.json
npu-tag new.json | grep -c '"fusion_group"\|"fusion": {' || :
