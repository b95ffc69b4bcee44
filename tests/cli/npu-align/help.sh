# SPDX-License-Identifier: Apache-2.0
npu-align --help
