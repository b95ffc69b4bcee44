#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plants faults in a copy of the sources and expects the checks of this folder to report them.
#
# Usage: check_planted.sh SOURCE-DIR
set -eu
source=$(cd "$1" && pwd)
checks=$source/tests/tree
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$source/libcore" "$source/tools" "$source/scripts" "$source/man" "$source/tests" "$source/CONTRIBUTING.md" "$copy/"

# The check must fail and print the text. $1: text, rest: the check
expect() {
  wanted=$1
  shift
  if found=$("$@" "$copy" 2>&1); then
    echo "check_planted.sh: $* took a fault for none; expected '$wanted'" >&2
    exit 1
  fi
  case $found in
    *"$wanted"*) ;;
    *)
      echo "check_planted.sh: $* says '$found', expected '$wanted'" >&2
      exit 1
      ;;
  esac
}

# plant FILE: adds the text on stdin to a file of the copy
plant() { cat >>"$copy/$1"; }
# uproot FILE: removes it again
uproot() { if [ -f "$source/$1" ]; then cp "$source/$1" "$copy/$1"; else rm -r "${copy:?}/$1"; fi; }

echo '#include "ir/verify_graph.hpp"' | plant libcore/src/support/text.cpp
expect 'module support includes "ir/verify_graph.hpp" of ir' sh "$checks/check_modules.sh"
uproot libcore/src/support/text.cpp

echo '#include "gnn/plan/find_plan.hpp"' | plant libcore/src/gnn/graph/halo.cpp
expect 'module gnn/graph includes "gnn/plan/find_plan.hpp" of gnn/plan' sh "$checks/check_modules.sh"
uproot libcore/src/gnn/graph/halo.cpp

echo '#include "lowering/plan.hpp"' | plant libcore/backends/opencl/driver/clock.cpp
expect 'module backends/opencl/driver includes "lowering/plan.hpp" of backends/opencl/lowering' sh "$checks/check_modules.sh"
uproot libcore/backends/opencl/driver/clock.cpp

mkdir "$copy/libcore/src/novelty"
echo 'int x;' | plant libcore/src/novelty/thing.cpp
expect 'its module "novelty" is not in the list' sh "$checks/check_modules.sh"
uproot libcore/src/novelty

{
  echo 'namespace npu {'
  echo 'int far_too_long() {'
  awk 'BEGIN { for (i = 0; i < 80; ++i) print "  ++x;" }'
  echo '}'
  echo '}  // namespace npu'
} | plant libcore/src/support/text.cpp
expect 'libcore/src/support/text.cpp: function far_too_long has 82 lines' sh "$checks/check_sizes.sh"
uproot libcore/src/support/text.cpp

awk 'BEGIN { for (i = 0; i < 600; ++i) print "// A line." }' | plant libcore/src/support/text.cpp
expect 'libcore/src/support/text.cpp: the file has' sh "$checks/check_sizes.sh"
uproot libcore/src/support/text.cpp

awk 'BEGIN { for (i = 0; i < 90; ++i) print "// A line." }' | plant tools/npu_fuse.cpp
expect 'tools/npu_fuse.cpp: the program has' sh "$checks/check_sizes.sh"
uproot tools/npu_fuse.cpp

awk 'BEGIN { for (i = 0; i < 250; ++i) print "// A line." }' | plant libcore/include/npu/tensor/tensor.hpp
expect 'libcore/include/npu/tensor/tensor.hpp: the header has' sh "$checks/check_sizes.sh"
uproot libcore/include/npu/tensor/tensor.hpp

for number in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
  echo 'int x;' | plant "libcore/src/csr/many$number.cpp"
done
expect 'libcore/src/csr: the folder has' sh "$checks/check_sizes.sh"
rm "$copy"/libcore/src/csr/many*

{
  echo 'namespace npu {'
  echo 'namespace {'
  echo 'struct TwiceThere {};'
  echo '}  // namespace'
  echo '}  // namespace npu'
} >"$copy/planted"
for file in digest text; do plant libcore/src/support/$file.cpp <"$copy/planted"; done
expect 'TwiceThere is also in libcore/src/support/digest.cpp' sh "$checks/check_names.sh"

echo 'bool wide() { return __builtin_cpu_supports("avx512f") != 0; }' | plant libcore/backends/onednn/kernels/norm/norms.cpp
expect 'asks the CPU; cpu_has of device/isa_level.hpp knows the limit' sh "$checks/check_cpu.sh"
uproot libcore/backends/onednn/kernels/norm/norms.cpp

echo 'Graph again(const Graph& graph) { return read_valid_graph(write_graph(graph), "again"); }' | plant libcore/src/runtime/run_model.cpp
expect 'libcore/src/runtime/run_model.cpp' sh "$checks/check_text.sh"
expect 'reads what it has written; hand over the graph' sh "$checks/check_text.sh"
uproot libcore/src/runtime/run_model.cpp
{
  echo 'Json again(const Json& json) {'
  echo '  const std::string text ='
  echo '      json.dump();'
  echo '  return parse_json('
  echo '      text, "again");'
  echo '}'
} | plant libcore/src/partition/partition_plan.cpp
expect 'partition_plan.cpp:' sh "$checks/check_text.sh"
expect 'reads text that is no file; tests/tree/check_text.sh lists who may' sh "$checks/check_text.sh"
uproot libcore/src/partition/partition_plan.cpp
sed -i 's/parse_json(text, "answer")/nothing/' "$copy/libcore/src/device/device_check.cpp"
expect 'nothing in device_check.cpp reads text' sh "$checks/check_text.sh"
uproot libcore/src/device/device_check.cpp

# Two scripts that only name each other.
echo 'exec scripts/bench/unheard_of.py' | plant scripts/bench/nobody.sh
echo '"""Started by nobody.sh."""' | plant scripts/bench/unheard_of.py
expect 'scripts/bench/nobody.sh: no page of man/, no test and no line of CONTRIBUTING.md leads to it' sh "$checks/check_scripts.sh"
expect 'scripts/bench/unheard_of.py: no page of man/' sh "$checks/check_scripts.sh"
uproot scripts/bench/unheard_of.py
uproot scripts/bench/nobody.sh

# A module of a package that no script imports.
echo 'NOTHING = 0' | plant scripts/export/nowhere.py
expect 'scripts/export/nowhere.py: no page of man/' sh "$checks/check_scripts.sh"
uproot scripts/export/nowhere.py

# A label that stands in no tier.
echo 'set_tests_properties(novelty PROPERTIES LABELS novelty)' | plant tests/tree/CMakeLists.txt
expect "label 'novelty': stands in 0 of the lists" sh "$checks/check_tiers.sh"
uproot tests/tree/CMakeLists.txt
sed -i "s/^labels='/&nothing|/" "$copy/scripts/test.sh"
expect "label 'nothing': no test has it" sh "$checks/check_tiers.sh"
uproot scripts/test.sh

# Scripts at the top, each of which a reached one names.
for number in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20; do
  echo "scripts/many$number.sh" | plant scripts/test.sh
  echo 'exit' | plant "scripts/many$number.sh"
done
expect 'entries, expected at most 20' sh "$checks/check_scripts.sh"
