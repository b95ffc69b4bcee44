#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a script that makes ONNX models and checks their results, with a Python that has NumPy; 77 means that there is none.
#
# Usage: check_script.sh SCRIPT BIN-DIR [OPTION...]
set -eu
script=$1 bin=$2
shift 2
for python in ${PYTHON:-} python3 /usr/bin/python3; do
  "$python" -c 'import numpy' 2>/dev/null || continue
  "$python" "$script" --bin "$bin" "$@" >lines.txt && exit 0
  grep -v '^pass' lines.txt
  exit 1
done
echo "no Python with NumPy; on Debian: apt-get install python3-numpy" >&2
exit 77
