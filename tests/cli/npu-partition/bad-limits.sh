# SPDX-License-Identifier: Apache-2.0
# Limits that no plan meets, and values that are not valid limits.
. "$CASES/lib.sh"
npu-tag --target pytorch-apple "$TESTDATA/models/resnet18.json" >tagged.json
try_silent npu-partition --memory-limit 1000 tagged.json
npu-tag --target pytorch-apple "$TESTDATA/models/resnet18.json" --force 'cpu=aten.add_.*' --force 'npu=aten.conv2d*' \
  --force 'npu=aten.batch_norm*' >forced.json
try_silent npu-partition -s mincut --max-partitions 3 forced.json
try_silent npu-partition --max-partitions 3 forced.json
try_silent npu-partition --strategy metis -k 100 tagged.json
try_silent npu-partition --strategy metis -k 60 tagged.json
try_silent npu-partition --max-partitions 0 tagged.json
try_silent npu-partition --memory-limit 1MB tagged.json
try_silent npu-partition --min-flops -1 tagged.json
try_silent npu-partition -k 0 tagged.json
try_silent npu-partition --imbalance nan tagged.json
