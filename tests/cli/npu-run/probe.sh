# SPDX-License-Identifier: Apache-2.0
# A library that is only looked at cannot take the program down, whatever it does when it is loaded; and where the program
# that looks at it is missing, it is not loaded at all.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/test-backends" ]; then cat "$CASES/npu-run/probe.stdout"; exit; fi
mkdir vendor
cp "$lib/test-backends/npu_backend_vendor.so" vendor/
NPU_BACKEND_PATH=$PWD/vendor
export NPU_BACKEND_PATH
short() { sed "s|/[^ ]*/vendor/|./|g; s|since [^ ]*/libexec|since libexec|"; }
for fault in crash exit exit-0; do
  echo "$fault:"
  WRAP_FAULT=$fault npu-run --list-backends | grep -o '"backend":"vendor".*"}' | short
  WRAP_FAULT=$fault npu-run --check-backend vendor --quick 2>messages >report
  echo "exit $?, $(wc -l <messages) line"
  short <messages
  [ -s report ] && echo "wrote output"
done
echo "without the helper:"
mkdir -p elsewhere/bin
cp "$(command -v npu-run)" elsewhere/bin/
elsewhere/bin/npu-run --list-backends | grep -o '"backend":"vendor".*"}' | short
