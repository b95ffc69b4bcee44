// SPDX-License-Identifier: Apache-2.0
// Shapes of blocks on devices with static ones.
#include "gnn/run/block_table.hpp"

#include <vector>

#include "catch.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

/// A layer of one stage that reads numbers of edges.
StagedModel model_of(bool writes_rows) {
  StagedModel model;
  LayerInfo& layer = model.layers.emplace_back();
  layer.stages.emplace_back().writes_rows = writes_rows;
  StageTensor& tensor = layer.tensors.emplace_back();
  tensor.consumers = {1};
  tensor.edge_bytes = 4;
  return model;
}

BlockKey key_of(bool writes_rows, std::int64_t owned, std::int64_t local, std::size_t edges) {
  ShareTask task;
  task.view.owned = owned;
  task.view.local = local;
  task.view.sources = std::vector<std::int32_t>(edges, 0);
  return block_key(model_of(writes_rows), 1, task, 0, true, 8);
}

}  // namespace

TEST_CASE("padding edges have a row to write that is no node's", "[gnn]") {
  // 16 nodes fill two quanta: a third one is for what the seven padding edges write.
  const BlockKey full = key_of(true, 16, 16, 41);
  CHECK(full.owned == 24);
  CHECK(full.local == 24);
  CHECK(full.edges == 48);
  CHECK(key_of(true, 15, 15, 41).owned == 16);
  CHECK(key_of(true, 16, 16, 48).owned == 16);
  CHECK(key_of(false, 16, 16, 41).owned == 16);
  // Of rows with a halo those that are computed are a part.
  const BlockKey halo = key_of(true, 16, 18, 41);
  CHECK(halo.owned == 24);
  CHECK(halo.local == 24);
}
