# SPDX-License-Identifier: Apache-2.0
# --list-ops names every device or one; the small target keeps the table short.
. "$CASES/lib.sh"
target=$CASES/npu-tag/small_target.json
npu-tag --target "$target" --list-ops
echo
npu-tag --target "$target" --list-ops npu
echo
try npu-tag --target "$target" --list-ops gpu
echo "built-in tables:"
for name in host pytorch-apple; do
  npu-tag --target $name --list-ops >all
  npu-tag --target $name --list-ops npu >npu
  npu-tag --target $name --list-ops cpu >cpu
  [ $(($(wc -l <npu) + $(wc -l <cpu) - 1)) -eq "$(wc -l <all)" ] || echo "$name: the parts are not the whole"
  grep -c 'aten.conv2d.default' npu
done
