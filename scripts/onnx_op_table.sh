#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Turns what `npu-tag --list-ops --frontend onnx` prints into the table of npu-onnx(7). Reads stdin, writes stdout.
set -eu
sed -n 's/^{\(.*\)}.*/\1/p' | sed '
  s/,"ignores":\[[^]]*\]$//
  s/^"domain":"\([^"]*\)","op":"\([^"]*\)"/"op":"\1.\2"/
  s/^"op":"\([^"]*\)","since":\([0-9]*\),"becomes":"\([^"]*\)"$/.It \1 , \2\n\3/
  s/^"op":"\([^"]*\)","since":\([0-9]*\),"refused":"\([^"]*\)"$/.It \1 , \2\nrefused: \3/'
