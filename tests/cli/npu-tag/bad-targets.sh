# SPDX-License-Identifier: Apache-2.0
# Every malformed target description is refused; the document is not read.
. "$CASES/lib.sh"
refuse_all "$TESTDATA/bad/target/" "$TESTDATA"/bad/target/*.json -- npu-tag --print-target --target {}
