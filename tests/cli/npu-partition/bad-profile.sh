# SPDX-License-Identifier: Apache-2.0
# Tables of measured times with one fault each.
. "$CASES/lib.sh"
npu-tag "$TESTDATA/models/small/residual.json" >tagged.json
refuse_all "$TESTDATA/bad/node_table/" "$TESTDATA"/bad/node_table/*.json -- npu-partition --profile {} tagged.json
for file in "$TESTDATA/corpus/node_table/mixed.json" "$TESTDATA/gnn/profile.json" missing.json ""; do
  npu-partition --profile "$file" tagged.json 2>&1 >out | sed "s|$TESTDATA/||; s/digest [0-9a-f]*/digest N/g"
done
wc -c <out | tr -d ' '
