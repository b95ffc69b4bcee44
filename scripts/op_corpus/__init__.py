# SPDX-License-Identifier: Apache-2.0
"""The cases of testdata/ops, a module for each pair of files; make_op_corpus.py beside them writes them."""
