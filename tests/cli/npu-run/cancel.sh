# SPDX-License-Identifier: Apache-2.0
# Runs of a minute that are ended in their middle: by a signal, by the deadline, in a queue and without one, the first and a
# timed one. Without a backend that can cancel, a run ends between its steps.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/faulty-backends" ]; then cat "$CASES/npu-run/cancel.stdout"; exit; fi
NPU_BACKEND_PATH=$lib/test-backends
export NPU_BACKEND_PATH
target=$CASES/../../scripts/examples/skeleton-queue/skeleton_queue_target.json
# place NAME OPTIONS: three relus and adds over two devices
place() {
  sed "s/\"instance\"/$2 \"instance\"/" "$target" >"$1.target.json"
  npu-tag --target "$1.target.json" --force npu1=middle --force npu0=first --force npu0=last "$CASES/npu-run/queue_chain.json" |
    npu-partition -s contiguous >"$1.json"
}
place minute '"delay_us": 60000000,'
place quick '"delay_us": 100000,'
few() { [ "$1" -lt 20 ] && echo few || echo "$1"; }
# ended SIGNAL OPTION...
ended() {
  : >messages
  signal=$1
  shift
  # A background process of sh ignores SIGINT, which env gives back.
  env --default-signal=INT npu-run "$@" minute.json --random-inputs 1 --outputs none.safetensors -v -v >out 2>messages &
  while ! grep -q 'loaded: ' messages; do sleep 0.02; done
  sleep 0.3
  begin=$(date +%s)
  kill -"$signal" $!
  wait $! 2>/dev/null
  echo "$signal $*: exit $? after $(few $(($(date +%s) - begin))) seconds, $(wc -c <out) bytes"
  grep 'left behind' messages
}
ended INT
ended TERM --no-overlap
ended TERM --in-flight 2
late() {
  begin=$(date +%s)
  try_silent npu-run "$@" --random-inputs 1 --outputs none.safetensors
  echo "after $(few $(($(date +%s) - begin))) seconds"
}
late minute.json --deadline 2
late minute.json --deadline 2 --no-overlap
[ -e none.safetensors ] && echo "outputs of a run that was ended"
echo "a timed run:"
npu-run quick.json --random-inputs 1 --bench 1000 --deadline 3 --outputs some.safetensors >report
echo "exit $?, $(grep -o '"deadline_over": *true' report), $([ "$(number runs <report)" -lt 20 ] && echo "few runs")"
npu-run quick.json --random-inputs 1 --outputs whole.safetensors >report
cmp some.safetensors whole.safetensors && echo "same outputs"
grep deadline_over report
exit 0
