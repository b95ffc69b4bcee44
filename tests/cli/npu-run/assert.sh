# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
plan=$CASES/npu-run/three_steps.json
run() {
  echo "\$ npu-run $*"
  npu-run "$plan" --random-weights 0 --random-inputs 0 "$@" 2>&1 >report
  echo "exit $?, $(grep -c '"kind"' report) steps"
}
run --assert 'transfers==2' --assert 'transfer_bytes==48' --assert 'transfers>2'
run --assert 'transfer==2'
run --assert 'transfers'
