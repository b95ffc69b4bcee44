# SPDX-License-Identifier: Apache-2.0
# A syntax error has line and column; nothing is written.
printf '{"model_name": "m",\n "nodes": [}\n' | npu-align
