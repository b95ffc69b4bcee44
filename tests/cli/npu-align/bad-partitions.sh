# SPDX-License-Identifier: Apache-2.0
# Plans that do not match their document are refused if the layout depends on them, and never crash.
. "$CASES/lib.sh"
for file in "$TESTDATA"/bad/partition/*.json; do
  name=${file##*/}
  npu-align "$file" >out.json 2>err.txt
  status=$?
  case $status in
    0) ;;
    1) sed "s|$TESTDATA/bad/partition/||; s|^npu-align: ||" err.txt; [ -s out.json ] && echo "$name: WROTE OUTPUT" ;;
    *) echo "$name: exit $status"; cat err.txt ;;
  esac
done
