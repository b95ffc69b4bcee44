# SPDX-License-Identifier: Apache-2.0
# Every malformed document is refused with a message that names file and place.
. "$CASES/lib.sh"
refuse_all "$TESTDATA/bad/document/" "$TESTDATA"/bad/document/*.json -- npu-tag {}
