# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-partition --no-such-option
try npu-partition -z
try npu-partition one.json two.json
try npu-partition --quiet=maybe
