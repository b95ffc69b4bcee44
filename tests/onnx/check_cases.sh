#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a few of ONNX's own cases on the cpu, those whose import does most; scripts/check/onnx_suite.sh runs all of them. 77 means
# that Debian's libonnx-testdata is not installed.
#
# Usage: check_cases.sh SOURCE-DIR BIN-DIR
set -eu
[ -d /usr/share/libonnx-testdata/data ] || {
  echo "no ONNX cases; on Debian: apt-get install libonnx-testdata" >&2
  exit 77
}
few='*/test_loop11,*/test_scan*,*/test_range_float*,*/test_dft*,*/test_stft,*/test_roialign*,*/test_maxunpool*_with_*,*/test_unique*without*,*/test_nonmax*two*,*/test_compress_0,*/test_nonzero*,*/test_lstm_with*,*/test_gru_seq*,*/test_cast_FLOAT_to_BFLOAT16,*/test_melweightmatrix,*/test_training_dropout_zero_ratio,*/test_scatternd_multiply,*/test_resize_tf*,*/test_qlinearconv,*/test_dynamicquantizelinear'
XDG_CACHE_HOME=$PWD NPU_BIN=$2 "$1/scripts/check/onnx_suite.sh" --cases "$few" >lines.txt 2>count.txt
grep -q '^28 cases: 28 pass$' count.txt && exit 0
grep -v '^pass' lines.txt
cat count.txt
exit 1
