# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-run --no-such-option
try npu-run -z
try npu-run one.json two.json
try npu-run --quiet=maybe
