# SPDX-License-Identifier: Apache-2.0
# What --info says, without what depends on the machine.
. "$CASES/lib.sh"
npu-tag --force 'cpu=aten.linear*' "$TESTDATA/models/small/mlp.json" | npu-partition | npu-compile -o mlp.npub
echo "$?"
npu-compile --info mlp.npub >info
sed -n 's/^  "\([a-z_0-9]*\)".*/\1/p' info
grep -c '"xxh3":"[0-9a-f]\{16\}"' info
number bundle_version <info
[ "$(number bytes <info)" = "$(wc -c <mlp.npub)" ] && echo "its size"
npu-compile --info --report mlp.npub 2>&1 >/dev/null | grep -E '^(section|document|partition [0-9]|weights|partition )' | sed 's/  .*//'
echo "no bundle:"
try npu-compile --info "$TESTDATA/models/small/mlp.json"
try npu-compile --info missing.npub
echo "a bundle where a document is expected:"
try npu-compile mlp.npub -o again.npub
try npu-tag mlp.npub
