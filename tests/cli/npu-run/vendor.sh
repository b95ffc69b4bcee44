# SPDX-License-Identifier: Apache-2.0
# Vendors' backends: found through NPU_BACKEND_PATH, and those that fail are refused.
. "$CASES/lib.sh"
NPU_BACKEND_PATH=$(dirname "$(command -v npu-run)")/../lib/npu/test-backends
export NPU_BACKEND_PATH
if [ ! -d "$NPU_BACKEND_PATH" ]; then cat "$CASES/npu-run/vendor.stdout"; exit; fi
vendor_target vendor >target.json
npu-tag --target ./target.json "$CASES/npu-compile/branches.json" | npu-partition >part.json
run() { npu-run --no-cache part.json --random-weights 1 --random-inputs 1 "$@" 2>&1 >report | sed "s|^npu-run: /.*/npu_backend|npu-run: .../npu_backend|"; }
run --verify cpu --report | sed -n 's/^\(npu2*\|cpu\)  *\([a-z]*\)  *\([0-9]*\)  *\([0-9]*\) .*/\1 \2 \3 nodes \4 partitions/p'
comparison verify <report
for fault in crash exit exit-0 abi table name status no-blob no-model no-program no-buffer refuse; do
  WRAP_FAULT=$fault
  export WRAP_FAULT
  echo "$fault: $(run)" | sed 's/ABI version [0-9]*, expected [0-9]*/ABI version N, expected M/'
  if [ -s report ]; then echo "wrote output"; fi
done
echo "it ends the program:"
for fault in exit-compile exit-load exit-run thread-memory thread-fault; do
  export WRAP_FAULT=$fault
  npu-run --no-cache part.json --random-weights 1 --random-inputs 1 >report
  echo "$fault: exit $?"
  if [ -s report ]; then echo "wrote output"; fi
done 2>&1
echo "it prints where the document goes:"
export WRAP_FAULT=print
npu-run --no-cache part.json --random-weights 1 --random-inputs 1 2>messages | head -c 1
echo
sort -u messages
