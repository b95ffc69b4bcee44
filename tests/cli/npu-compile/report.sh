# SPDX-License-Identifier: Apache-2.0
# --report: a row for every partition; metrics for --assert.
. "$CASES/lib.sh"
npu-tag --force 'cpu=aten.relu*' "$TESTDATA/models/small/residual.json" | npu-partition -o part.json
npu-compile --report --no-cache part.json -o m.npub 2>report
sed 's/  */ /g' report | cut -d' ' -f2-5 | head -n 12
sed -n '/^total/,$p' report | sed 's/  */ /g; s/\(compile ms\).*/\1/'
try npu-compile part.json -o m.npub --assert 'partitions==11' --assert 'refused==0' \
  --assert 'compile_ms>=0' --assert 'blob_bytes>1000' --assert 'flops>1000'
try npu-compile part.json -o m.npub --assert 'partitions<2'
npu-compile part.json -o m.npub --assert 'speed<2' 2>&1 | sed 's/expected one of.*/.../'
