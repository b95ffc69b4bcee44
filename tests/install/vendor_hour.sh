#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the examples of npu-backend(3) with what is installed, as a vendor would: the skeleton is built with a C compiler
# alone, passes the conformance cases, and computes a part of a model. Then it is built once more with its CMakeLists.txt,
# all warnings and short enums.
#
# Usage: vendor_hour.sh PREFIX SOURCE SCRATCH [no-models]
#   no-models  there is no backend aten, so only the examples up to the conformance cases run
set -eu
prefix=$1 source=$2 scratch=$3
fail() {
  echo "vendor_hour.sh: $*" >&2
  exit 1
}

rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
ln -s "$source/testdata" testdata
PATH=$prefix/bin:$PATH
XDG_CACHE_HOME=$scratch/cache
export PATH XDG_CACHE_HOME
sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^[$>] //p' "$prefix/share/man/man3/npu-backend.3" |
  sed 's/\\-/-/g; s/\\e$/\\/' >commands
[ "$(wc -l <commands)" -gt 8 ] || fail "the page has $(wc -l <commands) lines of examples"
[ "${4:-}" != no-models ] || sed -i '/^npu-tag/,$d' commands
sh -eux commands >output 2>&1 || {
  tail -n 40 output >&2
  fail "an example of npu-backend(3) fails"
}
grep -q '"failed": 0' check.json || fail "the skeleton fails a case: $(cat check.json)"
[ "$(grep -c '"result":"pass"' check.json)" -ge 17 ] || fail "not all cases ran: $(cat check.json)"
grep -q '"failed": 0' check_queue.json || fail "the skeleton with queues fails a case: $(cat check_queue.json)"
grep -q '"case":24,"title":"queues and events","result":"pass"' check_queue.json ||
  fail "the case of queues did not run: $(cat check_queue.json)"
if [ "${4:-}" != no-models ]; then
  grep -q '"skeleton": *"1.0"' run.json || fail "the skeleton does not run: $(cat run.json)"
  grep -q '"kind":"partition".*"device":"npu"' run.json || fail "no partition is on the skeleton: $(cat run.json)"
fi

for example in skeleton:c11 skeleton-queue:c99; do
  name=${example%:*} flags="-std=${example#*:} -fshort-enums -Wall -Wextra -Wpedantic -Werror"
  if ! { cmake -S "$prefix/share/npu/examples/$name" -B "build-$name" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="$flags" >log 2>&1 &&
    cmake --build "build-$name" >>log 2>&1 && (cd "build-$name" && ctest) >>log 2>&1; }; then
    tail -n 40 log >&2
    fail "the example $name does not build, or its test fails"
  fi
done
