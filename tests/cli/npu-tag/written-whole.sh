# SPDX-License-Identifier: Apache-2.0
# Through links, too, an output is replaced as a whole or not at all; a file that grows too large is an error like any.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
echo OLD >real
ln -s real link
limited() { (ulimit -f 4; npu-tag "$model" -o "$1"; echo "exit $?"); }
for name in real link new; do limited $name; done
cat real
echo "a link stays, and leads to the new document:"
npu-tag "$model" -o link
readlink link
npu-tag "$model" | cmp - real
echo "a dangling link leads to a new file:"
ln -s made dangling
npu-tag "$model" -o dangling
cmp made real
echo "names of stdout:"
for name in /dev/stdout /dev/fd/1 /proc/self/fd/1; do npu-tag "$model" -o $name | cmp - real; done
{
  npu-tag "$model" -o /dev/stdout
  echo end
} >both
tail -n 1 both
echo "streams that are closed:"
npu-tag "$model" >&-
echo "exit $?"
npu-tag "$model" 2>&- | cmp - real
npu-tag <&-
echo "exit $?"
ls
