# SPDX-License-Identifier: Apache-2.0
# The ops that the backends have registered, by device.
. "$CASES/lib.sh"
ln -s "$(dirname "$(command -v npu-run)")/../tests/libaten_custom_ops.so" libmyops.so
npu-run --list-ops >all
npu-run --list-ops npu >npu
npu-run --list-ops cpu >cpu
[ $(($(wc -l <npu) + $(wc -l <cpu) - 1)) -eq "$(wc -l <all)" ] || echo "the parts are not the whole"
head -n 1 all
awk 'NR > 1 && $1 == "cpu" && $NF == "aten" { ++count } END { print (count > 2000 ? "over 2000" : count) " ATen overloads" }' all
awk '$1 == "cpu" && $NF == "decomposition" { ++count } END { print (count >= 30 ? "over 30" : count) " decompositions" }' all
grep -E ' aten\.(relu\.default|scaled_dot_product_attention\.default|_native_batch_norm_legit_no_training\.default) ' cpu | tr -s ' '
grep -E ' aten\.conv2d\.default ' npu | tr -s ' '
grep -c custom all
npu-run --load-ops libmyops.so --list-ops cpu | grep -w custom | tr -s ' '
sort -c -k2,2 cpu 2>/dev/null || LC_ALL=C awk 'NR > 1' cpu | LC_ALL=C sort -c && echo sorted
try npu-run --list-ops gpu
npu-tag --print-target | sed 's/"backend": *"onednn",//' >planning.json
try npu-run --target ./planning.json --list-ops npu
npu-run --target ./planning.json --list-ops | grep -c ' onednn$'
