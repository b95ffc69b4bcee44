# SPDX-License-Identifier: Apache-2.0
# A backend that takes a hundred seconds to compile: a signal or the deadline stops it, whether or not it listens, and
# nothing is left behind. A busy machine gets more than the two seconds that it takes.
. "$CASES/lib.sh"
NPU_BACKEND_PATH=$(dirname "$(command -v npu-run)")/../lib/npu/test-backends
export NPU_BACKEND_PATH
if [ ! -d "$NPU_BACKEND_PATH" ]; then cat "$CASES/npu-compile/interrupt.stdout"; exit; fi
vendor_target wrap >slow.json
npu-tag --target ./slow.json "$CASES/npu-compile/branches.json" | npu-partition -o part.json
mkdir out cache
export WRAP_MARK=mark
# ended SIGNAL OPTION...
ended() {
  signal=$1
  shift
  rm -f mark
  # A background process of sh ignores SIGINT, which env gives back.
  env --default-signal=INT npu-compile "$@" --cache-dir cache --random-weights 0 part.json -o out/b.npub 2>messages &
  while [ ! -e mark ]; do sleep 0.02; done
  begin=$(date +%s)
  kill -"$signal" $!
  wait $! 2>/dev/null
  status=$?
  seconds=$(($(date +%s) - begin))
  [ $seconds -lt 20 ] && seconds=few
  echo "$WRAP_FAULT, $signal $*: exit $status after $seconds seconds"
  ls -A out
  ls -A cache | sed '/[.]npublob$/d'
}
export WRAP_FAULT=slow=2000
ended INT
ended TERM -j 8
# Whether it stopped or was left behind depends on how busy the machine is.
late() { try npu-compile --no-cache --random-weights 0 "$@" 2>&1 | sed 's/ part.json: / /; s/\(deadline is over\).*/\1/'; }
late --deadline 3 part.json -o out/b.npub
export WRAP_FAULT=deaf=2000
ended INT -j 8
cat messages
late --deadline 2 part.json -o out/b.npub
ls -A out
echo "in time:"
export WRAP_FAULT=slow=2
try npu-compile --deadline 100 --no-cache --random-weights 0 part.json -o out/b.npub
ls out
try npu-run --deadline 100 --random-inputs 0 --bench 3 --assert 'runs==3' out/b.npub | tail -n 1
try npu-run --deadline 0.000001 --no-cache --random-weights 0 --random-inputs 0 part.json
try npu-run --deadline 0.000001 --random-inputs 0 out/b.npub
try npu-compile --deadline 0 part.json -o out/c.npub
echo "a deadline that is over once the run is done, while comparisons compile:"
# A compile takes half of the deadline; a busy machine gets a later one.
for seconds in 3 10 60; do
  WRAP_FAULT=slow=$((10 * seconds)) npu-run --deadline $seconds --random-inputs 0 --verify npu --isolate out/b.npub >report 2>messages
  status=$?
  grep -q 'before the first run' messages || break
done
cat messages
echo "exit $status, $(comparison verify <report)"
echo "progress, on a terminal:"
export WRAP_FAULT=slow=60
if command -v script >/dev/null; then
  script -qec "npu-compile --no-cache --random-weights 0 part.json -o out/b.npub" /dev/null </dev/null | tr '\r' '\n' |
    grep -o 's left, partition [0-9]* of [0-9]* on npu: dawdling' | head -n 1 | sed 's/partition [0-9]*/partition N/'
else
  grep 's left' "$CASES/npu-compile/interrupt.stdout"
fi
