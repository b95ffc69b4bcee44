# SPDX-License-Identifier: Apache-2.0
# A document that is not tagged is placed by cost, and a line says how; one that is tagged is
# partitioned, and one that is partitioned stays as it is.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
npu-compile "$small/residual.json" -o a.npub
npu-tag "$small/residual.json" -o tagged.json
npu-partition -s mincut tagged.json | npu-compile -o b.npub
cmp a.npub b.npub && echo same
npu-compile tagged.json -o b.npub
npu-partition tagged.json -o part.json
npu-compile part.json -o c.npub
cmp b.npub c.npub && echo same
echo "devices:"
try npu-compile --devices cpu "$small/residual.json" -o e.npub
try npu-compile --exclude-device npu -q "$small/residual.json" -o f.npub
cmp e.npub f.npub && echo same
npu-compile --info e.npub | sed -n 's/.*"device":"\([a-z]*\)","backend":"\([a-z]*\)".*/\1 on \2/p'
try npu-compile --devices gpu "$small/residual.json" -o e.npub
try npu-compile --devices cpu part.json -o c.npub
npu-compile --info a.npub | sed -n 's/.*"device":"\([a-z]*\)","backend":"\([a-z]*\)".*/\1 on \2/p'
try npu-compile --target pytorch-apple part.json -o c.npub
try npu-compile --target pytorch-apple "$small/residual.json" -o d.npub
