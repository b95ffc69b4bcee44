#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Imports every case of ONNX's test data; those that are refused, and the reasons, are in testdata/onnx/refused.txt.
#
# Usage: check_refused.sh SOURCE-DIR BIN-DIR
set -eu
[ -d /usr/share/libonnx-testdata/data ] || {
  echo "no ONNX cases; on Debian: apt-get install libonnx-testdata" >&2
  exit 77
}
NPU_BIN=$2 "$1/scripts/check/onnx_suite.sh" --import-only 2>/dev/null | grep '^refused' | diff "$1/testdata/onnx/refused.txt" -
