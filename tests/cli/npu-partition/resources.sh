# SPDX-License-Identifier: Apache-2.0
# --strategy resources: less traffic than first fit, tiles for nodes that do not fit by themselves.
. "$CASES/lib.sh"
for target in gpu tpu kpu; do
  for model in resnet18 mobilenet_v2 vit_b_16; do
    npu-tag -t $target "$TESTDATA/models/$model.json" | npu-fuse | npu-partition -s resources >part.json
    echo "$target $model: $(number partitions <part.json) partitions, $(number boundary_bytes <part.json) B;" \
      "first fit $(number first_fit_partitions <part.json), $(number first_fit_boundary_bytes <part.json) B;" \
      "$(number oversize_units <part.json) too large"
  done
done
npu-tag -t gpu "$TESTDATA/models/mobilenet_v2.json" | npu-fuse | npu-partition -s resources --report 2>&1 >part.json | sed -n '/^split/,/^$/p; /^does not fit/,/^$/p'
grep -c '"tiles": *{' part.json
echo "a limit on FLOPs:"
cat >limited.json <<'END'
{"name": "limited", "devices": [{"name": "npu", "ops": "*", "max_partition_flops": 50e6,
  "peak_flops": {"float32": 1e12}, "memory_bandwidth": 1e11}]}
END
npu-tag -t ./limited.json "$TESTDATA/models/mobilenet_v2.json" | npu-fuse | npu-partition -s resources >part.json
echo "$(number partitions <part.json) partitions, first fit $(number first_fit_partitions <part.json)"
echo "no limits:"
npu-tag "$TESTDATA/models/mobilenet_v2.json" >tagged.json
try_silent npu-partition -s resources tagged.json
