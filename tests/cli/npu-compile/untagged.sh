# SPDX-License-Identifier: Apache-2.0
# A document that is not tagged is tagged and partitioned with the defaults; one that is tagged is
# partitioned.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
npu-compile "$small/residual.json" -o a.npub
npu-tag "$small/residual.json" -o tagged.json
npu-compile tagged.json -o b.npub
npu-partition tagged.json -o part.json
npu-compile part.json -o c.npub
cmp a.npub b.npub && cmp a.npub c.npub && echo same
npu-compile --info a.npub | sed -n 's/.*"device":"\([a-z]*\)","backend":"\([a-z]*\)".*/\1 on \2/p'
try npu-compile --target pytorch-apple part.json -o c.npub
try npu-compile --target pytorch-apple "$small/residual.json" -o d.npub
