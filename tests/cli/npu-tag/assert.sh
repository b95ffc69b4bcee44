# SPDX-License-Identifier: Apache-2.0
# --assert: 0 if all hold, 4 and the document if one does not, 2 if it makes no sense.
. "$CASES/lib.sh"
model=$CASES/npu-tag/reasons.json
tag() {
  echo "\$ npu-tag $*"
  npu-tag "$model" --target "$CASES/npu-tag/small_target.json" "$@" 2>&1 >out.json
  echo "exit $?, $(grep -c '"device"' out.json) nodes"
}
tag --assert 'nodes==6' --assert 'nodes_npu>=2' --assert 'nodes_cpu<5' --assert 'unsupported_ops>1' --assert 'nodes != 7'
tag --assert 'nodes_npu>2'
tag --assert 'nodes_npu>2' --assert 'nodes==6' --assert 'coverage_nodes >= 0.5' --assert 'nodes_cpu<=4' --quiet
tag --assert ' nodes  ==  6.0 '
tag --assert 'flops==15132'
tag --assert 'speed>1'
tag --assert 'nodes=6'
tag --assert 'nodes'
tag --assert '==6'
tag --assert 'nodes=='
tag --assert 'nodes==six'
tag --assert 'nodes==6 or so'
tag --assert ''
tag --assert
