# SPDX-License-Identifier: Apache-2.0
# What a model takes of each device's memory: in the report, and against limits before anything is loaded.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/residual.json
npu-tag --force 'cpu=aten.relu*' "$model" | npu-partition -o part.json
# Sizes depend on the CPU; that the parts add up does not.
sizes() { sed 's/[0-9.]* [kMG]*B/SIZE/g; s/  */ /g; s/ $//'; }
npu-run part.json --threads 1 --random-weights 0 --random-inputs 0 --report 2>table >report
sed -n '/^memory /,/^$/p' table | sizes
echo "parts that do not add up:"
tr -d ' \n' <report | grep -o '{"device":"[a-z]*","needed_bytes":[^}]*}' >rows
tr ':,}' '   ' <rows | awk '{ if ($4 != $6 + $8 + $10 + $12 || $6 + $10 == 0) print }'
grep -c needed_bytes rows
try npu-run part.json --threads 1 --random-weights 0 --random-inputs 0 --assert 'memory_bytes>1000' --assert 'memory_bytes<1000000' | tail -n 1
echo "limits:"
try npu-run part.json --threads 1 --random-weights 0 --random-inputs 0 --memory-limit 1k | sizes
npu-run part.json --threads 1 --random-weights 0 --random-inputs 0 --memory-limit 1G >report && grep -c '"limit":"--memory-limit"' report
npu-tag --print-target host | sed 's/{"name":"npu",/&"memory_bytes":900,/' >small.json
npu-tag -t ./small.json "$model" | npu-partition | npu-compile --random-weights 0 -o m.npub 2>error
echo "$?"
sizes <error
[ -e m.npub ] && echo "it was written"
echo "a bundle:"
npu-compile --random-weights 0 part.json -o m.npub
npu-run m.npub --threads 1 --random-inputs 0 --memory-limit 1k 2>&1 >report | head -n 1 | sizes
[ -s report ] && echo "it ran"
npu-compile --info --report m.npub 2>&1 >info | sed -n '/^memory /,/^$/p' | sizes | grep SIZE | cut -d ' ' -f 5- | sort | uniq -c | tr -s ' '
npu-compile --info m.npub | grep -c '"memory":{"weights_bytes"'
try npu-run part.json --memory-limit lots
echo "a backend that says it of blobs alone:"
if [ -d "$(dirname "$(command -v npu-run)")/../lib/npu/test-backends" ]; then
  NPU_BACKEND_PATH=$(dirname "$(command -v npu-run)")/../lib/npu/test-backends
  export NPU_BACKEND_PATH
  npu-tag --print-target host | sed 's/"onednn"/"wrap"/' >wrapped.json
  npu-tag -t ./wrapped.json --devices npu "$model" | npu-partition |
    WRAP_FAULT=silent-blob npu-compile --no-cache --random-weights 0 -o wrapped.npub
  WRAP_FAULT=silent-model npu-run wrapped.npub --threads 1 --random-inputs 0 | grep -o '"accuracy":"[a-z]*"'
else
  echo '"accuracy":"exact"'
fi
