// SPDX-License-Identifier: Apache-2.0
// Linear layers before aggregations: where they move, where they stay, and
// that the block computes the same.
#include "gnn/run/linear_before_aggregate.hpp"

#include <cmath>
#include <random>
#include <string>

#include "catch.hpp"
#include "gnn/run/csr_kernels.hpp"
#include "npu/device/backend.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/error.hpp"
#include "test_paths.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

StagedModel model_of(const std::string& name) {
  return read_staged_model(std::string(NPU_TEST_DATA_DIR) + "/gnn/" + name + ".json");
}

int count_ops(const Json& block, const std::string& op) {
  int count = 0;
  for (const Json& node : block["nodes"]) count += node["op_type"] == op ? 1 : 0;
  return count;
}

Json moved(const StagedModel& model, std::int32_t layer, const BlockShape& shape) {
  const auto last = static_cast<std::int32_t>(model.layers.at(layer - 1).stages.size());
  const Json result =
      linear_before_aggregate(model.block(layer, 1, last, shape), shape, model.file);
  CHECK_NOTHROW(read_valid_graph(result.dump(), "block"));
  return result;
}

}  // namespace

TEST_CASE("a narrowing layer moves in front of its aggregation", "[runtime][gnn]") {
  const StagedModel model = model_of("graphsage");
  // Layer 2 goes from 8 to 4 columns: its two products of the same rows become one.
  const Json narrowing = moved(model, 2, {100, 100, 1000});
  CHECK(count_ops(narrowing, "aten.linear.default") == 1);
  CHECK(count_ops(narrowing, "aten.slice.Tensor") == 2);
  for (const Json& node : narrowing["nodes"]) {
    if (node["op_type"] == "aten.embedding.default") {
      CHECK(node["outputs"][0]["shape"] == Json({1000, 4}));
    }
  }
  // Layer 1 goes from 6 to 8 columns.
  CHECK(moved(model, 1, {100, 100, 1000}) == model.block(1, 1, 7, {100, 100, 1000}));
  // As many halo rows as edges: each would be multiplied to be read once.
  CHECK(moved(model, 2, {10, 1000, 1000}) == model.block(2, 1, 7, {10, 1000, 1000}));
}

TEST_CASE("owned rows share a product with few halo rows", "[runtime][gnn]") {
  const StagedModel model = model_of("graphsage");
  const Json joined = moved(model, 2, {100, 110, 1000});
  CHECK(count_ops(joined, "aten.linear.default") == 1);
  for (const Json& node : joined["nodes"]) {
    if (node["op_type"] != "aten.linear.default") continue;
    CHECK(node["inputs"][0]["shape"] == Json({110, 8}));
    CHECK(node["outputs"][0]["shape"] == Json({110, 8}));
  }
  // With six halo rows for each owned one a product of its own is cheaper.
  CHECK(count_ops(moved(model, 2, {100, 700, 9000}), "aten.linear.default") == 2);
}

TEST_CASE("what else reads an aggregation keeps it where it is", "[runtime][gnn]") {
  const StagedModel model = model_of("gcn");
  const BlockShape shape{100, 100, 1000};
  Json block = model.block(2, 1, 6, shape);
  for (const Json& node : block["nodes"]) {
    if (node["op_type"] == "aten.linear.default") {
      block["graph_outputs"].push_back(node["inputs"][0]);
    }
  }
  CHECK(linear_before_aggregate(block, shape, model.file) == block);
}

TEST_CASE("own rows that are added to a sum move with it", "[runtime][gnn]") {
  // GCN adds each node's own row to the sum of its neighbours' before the linear layer, from 8 to 4
  // columns: both are made of products then.
  const StagedModel model = model_of("gcn");
  for (const std::int64_t halo : {0, 10}) {
    const Json block = moved(model, 2, {100, 100 + halo, 1000});
    CHECK(count_ops(block, "aten.linear.default") == 1);
    for (const Json& node : block["nodes"]) {
      if (node["op_type"] == "aten.linear.default") {
        CHECK(node["outputs"][0]["shape"] == Json({100 + halo, 4}));
      }
      if (node["op_type"] == "aten.index_add.default") {
        CHECK(node["outputs"][0]["shape"] == Json({100, 4}));
      }
    }
  }
}

TEST_CASE("sums are finished where they are stored", "[runtime][gnn]") {
  constexpr std::int64_t kNodes = 40;
  constexpr std::int64_t kWidth = 21;
  constexpr std::int64_t kStride = 50;
  std::mt19937 engine(3);
  std::normal_distribution<float> normal;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> sources;
  for (std::int64_t v = 0; v < kNodes; ++v) {
    for (std::int64_t e = 0; e < v % 5; ++e) {
      sources.push_back(static_cast<std::int32_t>(engine() % kNodes));
    }
    offsets.push_back(static_cast<std::int64_t>(sources.size()));
  }
  std::vector<float> both(kNodes * kStride);
  for (float& value : both) value = normal(engine);
  std::vector<float> bias(kWidth);
  for (float& value : bias) value = normal(engine);
  const bool in_place = GENERATE(false, true);
  const bool relu = GENERATE(false, true);
  const bool mean = GENERATE(false, true);
  SegmentReduce reduce;
  reduce.offsets = offsets.data();
  reduce.sources = sources.data();
  reduce.x = {both.data(), false, kStride};
  reduce.rows = kNodes;
  reduce.width = kWidth;
  reduce.aggregate = mean ? Aggregate::kMean : Aggregate::kSum;
  reduce.bias = bias.data();
  reduce.relu = relu;
  std::vector<float> out(kNodes * kWidth);
  for (std::int64_t v = 0; v < kNodes; ++v) {
    for (std::int64_t i = 0; i < kWidth; ++i) out[v * kWidth + i] = both[v * kStride + 25 + i];
  }
  reduce.addend = in_place ? RowsOf{out.data()} : RowsOf{both.data() + 25, false, kStride};
  reduce.out = out.data();
  segment_reduce(reduce, 2);
  for (std::int64_t v = 0; v < kNodes; ++v) {
    for (std::int64_t i = 0; i < kWidth; ++i) {
      double expected = 0;
      for (std::int64_t e = offsets[v]; e < offsets[v + 1]; ++e) {
        expected += static_cast<double>(both[sources[e] * kStride + i]);
      }
      if (mean && offsets[v + 1] > offsets[v]) {
        expected /= static_cast<double>(offsets[v + 1] - offsets[v]);
      }
      expected += static_cast<double>(bias[i]) + static_cast<double>(both[v * kStride + 25 + i]);
      if (relu) expected = std::max(expected, 0.0);
      REQUIRE(std::abs(static_cast<double>(out[v * kWidth + i]) - expected) < 1e-5);
    }
  }
}
