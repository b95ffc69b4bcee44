# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-fuse --no-such-option
try npu-fuse -z
try npu-fuse one.json two.json
try npu-fuse --quiet=maybe
