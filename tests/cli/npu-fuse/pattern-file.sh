# SPDX-License-Identifier: Apache-2.0
# A user-defined pattern comes first; it is in the report and among the metrics.
cat >mine.json <<'END'
{"patterns": [
  {"name": "stem", "ops": ["aten.conv2d.*", {"kind": ["elementwise", "broadcast"], "min": 0, "max": 4},
                           {"op": "aten.max_pool2d.*", "attrs": {"ceil_mode": false}, "operand": 0}]}]}
END
npu-fuse --pattern-file mine.json --report --assert 'groups_stem==1' "$TESTDATA/models/resnet18.json" 2>&1 >fused.json
grep '"pattern": *"stem"' fused.json | tr -d ' '
