# SPDX-License-Identifier: Apache-2.0
# --keep-tags keeps dev_info before device; a device that the target does not have is ignored.
. "$CASES/lib.sh"
sed -e '/^ *{"name": "conv", "op/s/"op_type"/"dev_info": "cpu", "op_type"/' \
    -e '/^ *{"name": "relu", "op/s/"op_type"/"device": "cpu", "op_type"/' \
    -e '/^ *{"name": "matmul", "op/s/"op_type"/"device": "cpu", "dev_info": "npu", "op_type"/' \
    -e '/^ *{"name": "add", "op/s/"op_type"/"device": "gpu", "op_type"/' \
    -e '/^ *{"name": "relu2", "op/s/"op_type"/"dev_info": 7, "device": null, "op_type"/' \
    "$CASES/npu-partition/seven_nodes.json" >model.json
echo "with:"
npu-tag --keep-tags model.json | placement
echo "without:"
npu-tag model.json | placement
echo "--force wins:"
npu-tag model.json --keep-tags --force npu=relu --force cpu=matmul | placement
