# SPDX-License-Identifier: Apache-2.0
# Faults of a target's `align` section are all reported, with their places.
. "$CASES/lib.sh"
cat >target.json <<'END'
{"name": "t", "devices": [
  {"name": "npu", "ops": "*", "peak_flops": {"float32": 1}, "memory_bandwidth": 1,
   "align": {"layout": "nhwc", "channel_multiple": 0, "ranks": [4, 0], "dtypes": ["int64"], "min_channel": 1,
             "align_only": ["convs", "aten.conv2.default"], "nalign_only": "gemm", "slice_axis": 1.5,
             "to_align": {"bandwidth": 0}, "to_nalign": []}}]}
END
try npu-align --target ./target.json "$TESTDATA/models/small/mlp.json"
try npu-tag --target ./target.json "$TESTDATA/models/small/mlp.json"
