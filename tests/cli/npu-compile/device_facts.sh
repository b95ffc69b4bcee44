# SPDX-License-Identifier: Apache-2.0
# Blobs belong to a device's fingerprint, in bundles and in the cache; functions that are not there
# have a fallback; tables of other lengths are served; fact sheets say what cannot be used.
. "$CASES/lib.sh"
NPU_BACKEND_PATH=$(dirname "$(command -v npu-run)")/../lib/npu/test-backends
export NPU_BACKEND_PATH
if [ ! -d "$NPU_BACKEND_PATH" ]; then cat "$CASES/npu-compile/device_facts.stdout"; exit; fi
vendor_target wrap >wrap.json
npu-tag --target ./wrap.json "$CASES/npu-compile/branches.json" | npu-partition -o part.json
echo "fingerprints:"
compile() {
  WRAP_FAULT=$1 npu-compile -q --random-weights 0 --assert 'cache_hits>=2' part.json -o "$2" 2>/dev/null
  echo "$1: exit $?"
}
compile fingerprint=one one.npub
compile fingerprint=one one.npub
compile fingerprint=two two.npub
cmp -s one.npub two.npub || echo "another bundle"
for print in one two; do
  WRAP_FAULT=fingerprint=$print npu-run one.npub --random-inputs 0 --verify cpu 2>&1 >report | sed "s/; here it is '.*'/; here it is .../"
  comparison verify <report
done
for fault in longer shorter no-map no-transfer none; do
  export WRAP_FAULT=$fault
  npu-run --no-cache --random-weights 0 --random-inputs 0 part.json --verify cpu >report
  echo "$fault: $(comparison verify <report)"
done
echo "features of a shorter table: $(WRAP_FAULT=shorter npu-run --list-backends | tr -d ' \n' | grep -o '"backend":"wrap",[^]]*]' | sed 's/.*"features"://')"
for fault in ir=2 unusable open=9 compile=3 compile=4 run=4 run=6 run=8; do
  export WRAP_FAULT=$fault
  npu-run --no-cache --random-weights 0 --random-inputs 0 part.json 2>message >report
  echo "$fault: exit $?"
  sed "s|/.*/npu_backend|.../npu_backend|; s/backend 'wrap' .*: it/backend 'wrap' V: it/" message
  if [ -s report ]; then echo "wrote output"; fi
done
echo "an instance:"
for id in wrap:1 'wrap:*' pci:0; do
  sed "s/\"backend\": \"wrap\"/\"backend\": \"wrap\", \"options\": {\"instance\": \"$id\"}/" wrap.json >instance.json
  npu-tag --target ./instance.json "$CASES/npu-compile/branches.json" | npu-partition -o instance.part.json
  WRAP_FAULT=two npu-compile --no-cache --random-weights 0 instance.part.json -o instance.npub 2>&1
  if [ -e instance.npub ]; then npu-compile --info instance.npub | grep -c '"fingerprint":"another"'; fi
  rm -f instance.npub
done
echo "a line of its own:"
WRAP_FAULT=log npu-run -v --no-cache --random-weights 0 --random-inputs 0 part.json 2>&1 >report | grep "fan" | sort -u
