#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs ONNX's own backend cases (Debian package libonnx-testdata, installed if it is missing) and prints a line for each:
# "pass CASE", "differs CASE: why" or "refused CASE: why". See onnx_suite.py for the options.
#
# Usage: onnx_suite.sh [OPTION...]    needs the programs in build/bin or in the folder $NPU_BIN
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -d /usr/share/libonnx-testdata/data ]; then
  apt-get install -y --no-install-recommends libonnx-testdata >&2
fi
exec python3 "$here/onnx_suite.py" --bin "${NPU_BIN:-$here/../../build/bin}" "$@"
