# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-tag --no-such-option
try npu-tag -z
try npu-tag --tgt host
try npu-tag --list-target
try npu-tag --outptu=x
try npu-tag one.json two.json
try npu-tag --quiet=maybe
