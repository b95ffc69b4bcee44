# SPDX-License-Identifier: Apache-2.0
# Regression limits on the strategy's results.
npu-tag --target pytorch-apple "$TESTDATA/models/mobilenet_v2.json" |
  npu-partition -s mincut --assert 'partitions<=36' --assert 'copied_tensors<=35' \
    --assert 'copied_bytes<=24450000' --assert 'gap==0' >mobilenet.json
npu-tag --target pytorch-apple "$TESTDATA/models/resnet50.json" --force 'cpu=aten.add_.*' |
  npu-partition -s mincut --assert 'copied_tensors<=36' --assert 'copied_bytes<=49850000' >resnet.json
npu-tag --target pytorch-apple "$TESTDATA/models/inception_v3.json" |
  npu-partition -s mincut --assert 'copied_tensors<=18' --assert 'copied_bytes<=16050000' >inception.json
npu-tag --target pytorch-apple "$TESTDATA/models/inception_v3.json" --force 'cpu=aten.cat.*' |
  npu-partition -s mincut --assert 'partitions<=25' --assert 'copied_bytes<=27750000' >inception_cat.json
