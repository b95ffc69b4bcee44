# SPDX-License-Identifier: Apache-2.0
# --assert: 0 if all hold, 4 and the document if one does not, 2 if it makes no sense.
. "$CASES/lib.sh"
fuse() {
  echo "\$ npu-fuse $*"
  npu-fuse "$TESTDATA/models/resnet18.json" "$@" 2>&1 >out.json
  echo "exit $?, $(grep -c '"fusion_group"' out.json) nodes"
}
fuse --assert 'kernels<=23' --assert 'groups==24' --assert 'launches_before==68' --assert 'nodes==69'
fuse --assert 'groups_conv-bn-act==9' --assert 'groups_residual==8' --assert 'groups_chain==0'
fuse --assert 'traffic_bytes<traffic_bytes_before'
fuse --assert 'kernels<23'
fuse --assert 'groups_no-such>0'
