#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that nothing but libcore/src/device/isa_level.cpp asks what the CPU can do, and nothing but the backend onednn
# what oneDNN makes of it: NPU_MAX_ISA limits the answers there, and a question anywhere else would have no limit.
#
# Usage: check_cpu.sh SOURCE-DIR   exits 1 with each line that asks
set -eu
LC_ALL=C
export LC_ALL
cd "$1"
asks='__builtin_cpu_(init|is|supports)|__get_cpuid|[^a-z_]cpuid[^a-z_]|_xgetbv|AT_HWCAP'
found=$(
  find libcore tools tests/unit -name '*.[ch]pp' -o -name '*.[ch]' | sort |
    xargs grep -nE "$asks|cpu_isa\(\)" |
    sed -E '/^libcore\/src\/device\/isa_level[.]cpp:/d; /^libcore\/backends\/onednn\/lowering\/engine\/machine[.]cpp:[0-9]*:.*cpu_isa\(\)/d'
)
[ -z "$found" ] && exit 0
printf '%s\n' "$found" | sed 's|$|: asks the CPU; cpu_has of device/isa_level.hpp knows the limit|'
exit 1
