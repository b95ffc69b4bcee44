# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
try npu-profile
try npu-profile --runs 0 graphsage.json
try npu-profile --nodes 0 graphsage.json
try npu-profile --degrees x graphsage.json
try npu-profile profile.json
try npu-profile --devices tpu graphsage.json
try npu-profile --import missing.json
try npu-profile --import graphsage.json
