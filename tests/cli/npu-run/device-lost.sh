# SPDX-License-Identifier: Apache-2.0
# A device that is lost in a run is opened again, and everything loaded again, once: the same outputs. A device that is lost
# again is an error.
. "$CASES/lib.sh"
NPU_BACKEND_PATH=$(dirname "$(command -v npu-run)")/../lib/npu/test-backends
export NPU_BACKEND_PATH
if [ ! -d "$NPU_BACKEND_PATH" ]; then cat "$CASES/npu-run/device-lost.stdout"; exit; fi
vendor_target wrap >target.json
npu-tag --target ./target.json "$CASES/npu-compile/branches.json" | npu-partition -o part.json
run() { npu-run part.json --random-weights 0 --random-inputs 0 --no-cache "$@"; }
run --outputs good.safetensors | grep recovered
for losing in 1 2; do
  echo "the first $losing:"
  WRAP_FAULT=losing=$losing run --bench 3 --verify cpu --outputs "lost$losing.safetensors" 2>messages >report
  echo "exit $?, $(grep -o '"recovered": *[0-9]*' report)"
  sed 's/^npu-run: [a-z.]*: //' messages
done
cmp lost1.safetensors good.safetensors && echo "same outputs"
[ -e lost2.safetensors ] && echo "outputs of a run that failed"
WRAP_FAULT=losing=1 run --assert 'recovered==1' >/dev/null && echo "a metric"
exit 0
