// SPDX-License-Identifier: Apache-2.0
// The aggregations of the models in testdata that run as segment reductions, and their operands.
#include "gnn/block/find_reductions.hpp"

#include "catch.hpp"
#include "gnn/model/staged_model.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

struct Found {
  Graph graph;
  std::vector<Reduction> sums;  ///< without counts of edges
  std::vector<OwnedSlice> slices;
};

Found reductions_of(const std::string& name, const BlockShape& shape) {
  const StagedModel model =
      read_staged_model(std::string(NPU_TEST_DATA_DIR) + "/gnn/" + name + ".json");
  const auto last = model.layers.front().stage_count();
  Found found;
  found.graph = model.block(1, 1, last, shape);
  for (const auto& [node, kernel] : find_reductions(found.graph, load_staged_weights(model, {}))) {
    if (const auto* slice = std::get_if<OwnedSlice>(&kernel)) {
      found.slices.push_back(*slice);
    } else if (std::get<Reduction>(kernel).rows.valid()) {
      found.sums.push_back(std::get<Reduction>(kernel));
    }
  }
  return found;
}

}  // namespace

TEST_CASE("a mean over neighbours gathers, and divides where it sums", "[gnn][reductions]") {
  const Found found = reductions_of("graphsage", {10, 10, 40});
  REQUIRE(found.sums.size() == 1);
  const Reduction& mean = found.sums.front();
  CHECK(mean.gather);
  CHECK(mean.aggregate == Aggregate::kMean);
  CHECK_FALSE(mean.factor.valid());
  CHECK(found.graph.tensor(mean.rows).name == kFeatureInput);
  // The result is that of the division, not of the sum.
  const Node& maker = found.graph.node(found.graph.tensor(mean.result).producer);
  CHECK(maker.op_type != "aten.index_add.default");
  CHECK(found.slices.empty());
}

TEST_CASE("weights of edges become factors", "[gnn][reductions]") {
  for (const std::string name : {"gcn", "gat"}) {
    CAPTURE(name);
    bool any_factor = false;
    for (const Reduction& sum : reductions_of(name, {10, 10, 40}).sums) {
      any_factor = any_factor || sum.factor.valid();
      CHECK(sum.aggregate != Aggregate::kMean);
    }
    CHECK(any_factor);
  }
}

TEST_CASE("norms and attention weights are computed beside the sum", "[gnn][reductions]") {
  using Kind = EdgeStep::Kind;
  for (const auto& [name, last] :
       {std::pair("gcn", Kind::kMultiply), std::pair("gat", Kind::kDivide)}) {
    CAPTURE(name);
    bool any = false;
    for (const Reduction& sum : reductions_of(name, {10, 10, 40}).sums) {
      if (sum.factor_steps.empty()) continue;
      any = true;
      CHECK(sum.factor_steps.back().step.kind == last);
      for (const EdgeFactor& each : sum.factor_steps) {
        const bool reads = each.step.kind == Kind::kSource || each.step.kind == Kind::kTarget;
        CHECK(each.node.valid() == reads);
      }
    }
    CHECK(any);
  }
}

TEST_CASE("a self loop is part of the sum", "[gnn][reductions]") {
  const Found found = reductions_of("gcn", {10, 10, 40});
  REQUIRE(found.sums.size() == 1);
  CHECK(found.graph.tensor(found.sums.front().own).name == kFeatureInput);
  CHECK(found.graph.tensor(found.sums.front().own_factor).shape == Shape{10, 1});
}

TEST_CASE("owned rows of an input with a halo are a slice", "[gnn][reductions]") {
  const Found found = reductions_of("graphsage", {10, 25, 40});
  REQUIRE(found.slices.size() == 1);
  CHECK(found.graph.tensor(found.slices.front().rows).shape[0] == 25);
  CHECK(found.graph.tensor(found.slices.front().result).shape[0] == 10);
  REQUIRE(found.sums.size() == 1);
}

TEST_CASE("the largest of rows is a reduction, and the shift of a softmax a step beside it",
          "[gnn][reductions]") {
  using Kind = EdgeStep::Kind;
  const Found largest = reductions_of("largest", {10, 10, 40});
  REQUIRE(largest.sums.size() == 1);
  CHECK(largest.sums.front().aggregate == Aggregate::kLargest);
  CHECK(largest.sums.front().gather);
  CHECK(largest.graph.tensor(largest.sums.front().rows).name == kFeatureInput);
  std::vector<Kind> kinds;
  for (const Reduction& sum : reductions_of("gat", {10, 10, 40}).sums) {
    for (const EdgeFactor& each : sum.factor_steps) kinds.push_back(each.step.kind);
  }
  CHECK(kinds == std::vector<Kind>{Kind::kSource, Kind::kTarget, Kind::kAdd, Kind::kLeakyRelu,
                                   Kind::kRowMax, Kind::kSubtract, Kind::kExp, Kind::kRowSum,
                                   Kind::kDivide});
}
