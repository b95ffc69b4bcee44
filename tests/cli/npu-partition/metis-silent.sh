# SPDX-License-Identifier: Apache-2.0
# METIS prints to stdout when parts are as small as these; what goes there is the document alone.
. "$CASES/lib.sh"
for name in residual lstm plain_norms; do
  npu-tag "$TESTDATA/models/small/$name.json" | npu-partition -s metis -k 5 --imbalance 9 >part.json
  head -n 1 part.json
done
