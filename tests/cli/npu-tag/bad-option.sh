# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
try npu-tag --tgt host
try npu-tag --list-target
try npu-tag --outptu=x
