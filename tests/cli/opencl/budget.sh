# SPDX-License-Identifier: Apache-2.0
# Drivers take a quarter of a second or more for a kernel: what the cases announce to build is no more than 27 together, but
# for those that are skipped.
. "$CASES/lib.sh"
sed -n 's/^need_opencl \([0-9]*\)$/\1/p' "$CASES"/opencl/*.sh | awk '{ sum += $1 } END { if (sum > 27) print sum, "kernels"; else print "at most 27 kernels" }'
grep -L '^need_opencl \(many\|[0-9]*\)$' "$CASES"/opencl/*.sh | sed 's,.*/,,; /^budget.sh$/d'
