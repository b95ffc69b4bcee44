# SPDX-License-Identifier: Apache-2.0
# Devices with queues: the same bits with and without them, the way that tensors took, several runs at once, what they fail
# with, and what is refused.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/faulty-backends" ]; then cat "$CASES/npu-run/in-flight.stdout"; exit; fi
NPU_BACKEND_PATH=$lib/test-backends
export NPU_BACKEND_PATH
target=$CASES/../../scripts/examples/skeleton-queue/skeleton_queue_target.json
# The way that each transfer took, of a report or a trace.
paths() { grep -E '"(kind|cat)":"transfer"' "$@" | grep -o '"path":"[a-z ]*"'; }
# place NAME SED-SCRIPT FORCE...: three relus and adds over two devices of the target, which sed changes
place() {
  name=$1
  sed "$2" "$target" >"$name.target.json"
  shift 2
  npu-tag --target "$name.target.json" "$@" "$CASES/npu-run/queue_chain.json" | npu-partition -s contiguous >"$name.json"
}
place queues '' --force 'npu1=middle' --force 'npu0=first' --force 'npu0=last'
npu-run queues.json --random-inputs 1 --outputs queues.safetensors --trace trace.json >report
paths report
paths trace.json
npu-run queues.json --random-inputs 1 --outputs blocking.safetensors --no-overlap >report
paths report
cmp queues.safetensors blocking.safetensors && echo "same outputs"
place nothing 's/"instance"/"test": "", "instance"/' --force 'npu1=middle' --force 'npu0=first' --force 'npu0=last'
npu-run nothing.json --random-inputs 1 --outputs nothing.safetensors >report
cmp nothing.safetensors blocking.safetensors && echo "the default of its option test: same outputs"
echo "several at once:"
npu-run queues.json --random-inputs 1 --in-flight 3 --outputs three.safetensors --verify cpu >report
echo "exit $?, $(comparison verify <report)"
cmp three.safetensors blocking.safetensors && echo "same outputs"
sed -n '/"in_flight"/,/}/p' report | tr -d ' \n'
echo
npu-run queues.json --random-inputs 1 --in-flight 3 --bench 12 --assert 'runs==12' --assert 'runs_per_second>0' --report \
  2>table >report
echo "exit $?"
grep -E '^in flight' table | tr -s ' '
npu-compile queues.json -o queues.npub
npu-run queues.npub --random-inputs 1 --in-flight 2 --bench 4 --outputs bundle.safetensors >report
cmp bundle.safetensors blocking.safetensors && echo "a bundle: same outputs"
npu-run queues.json --random-inputs 1 --in-flight 8 --verify npu0 >report
echo "all queues of a device, and a reference on it: exit $?, $(comparison verify <report)"
echo "a slow device: three at once have more than twice the throughput of one"
place slow 's/"instance"/"delay_us": 20000, "instance"/' --force 'npu1=middle' --force 'npu0=first' --force 'npu0=last'
for n in 1 3; do npu-run slow.json --random-inputs 1 --in-flight $n --bench 9 | number runs_per_second; done |
  awk 'NR == 1 { one = $1 } NR == 2 { print ($1 > 2 * one ? "more" : one " and " $1) }'
echo "without copies of the backend:"
NPU_BACKEND_PATH=$lib/faulty-backends CHECK_FAULT=no-copy npu-run queues.json --random-inputs 1 --outputs staged.safetensors |
  paths
cmp staged.safetensors blocking.safetensors && echo "same outputs"
echo "failures:"
place fails 's/"instance"/"fail_run": 2, "instance"/' --force 'npu1=middle' --force 'npu0=first' --force 'npu0=last'
try_silent npu-run fails.json --random-inputs 1 --outputs none.safetensors
[ -e none.safetensors ] && echo "outputs of a run that failed"
try_silent npu-run queues.json --random-inputs 1 --in-flight 9
place mixed '' --force 'npu0=first' --force 'cpu=middle' --force 'npu0=last'
try_silent npu-run mixed.json --random-inputs 1 --in-flight 2
npu-run mixed.json --random-inputs 1 --outputs mixed.safetensors --trace trace.json >report
cmp mixed.safetensors blocking.safetensors && echo "beside a backend without queues: same outputs"
try npu-run queues.json --random-inputs 1 --in-flight 2 --no-overlap
try npu-run queues.json --random-inputs 1 --in-flight 0
