# SPDX-License-Identifier: Apache-2.0
# The same input and options give the same bytes: with more jobs, from the cache, on stdout, in
# another folder.
small=$TESTDATA/models/small
npu-tag --force 'cpu=aten.relu*' "$small/residual.json" | npu-partition -o part.json
npu-compile --no-cache part.json -o one.npub
npu-compile --no-cache --jobs 4 part.json -o four.npub
npu-compile --jobs 3 part.json -o miss.npub
npu-compile part.json --assert 'cache_hits==11' --assert 'cache_misses==0' -o hit.npub
mkdir -p folder
npu-compile part.json -o folder/deeper.npub
npu-compile <part.json >stdout.npub
for file in four miss hit stdout folder/deeper; do cmp one.npub $file.npub && echo "$file: same"; done
