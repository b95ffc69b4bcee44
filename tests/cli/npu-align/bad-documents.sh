# SPDX-License-Identifier: Apache-2.0
# The reader is npu-tag's: the messages are the same, file by file.
. "$CASES/lib.sh"
refuse_all "$TESTDATA/bad/document/" "$TESTDATA"/bad/document/*.json -- npu-align {} >messages
diff "$CASES/npu-tag/bad-documents.stdout" messages && tail -n 1 messages
