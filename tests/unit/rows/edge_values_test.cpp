// SPDX-License-Identifier: Apache-2.0
// Each kind of step on three nodes with two, no and three edges, two heads, by hand.
#include "rows/edge_values.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"

using namespace npu;

namespace {

using EdgeKind = EdgeStep::Kind;
using EdgeNumbers = std::vector<float>;

const std::vector<std::int64_t> kEdgeOffsets{0, 2, 2, 5};
const std::vector<std::int32_t> kEdgeSources{2, 0, 1, 1, 2};
const EdgeNumbers kOfNodes{1, 10, 2, 20, 3, 30};
const EdgeNumbers kOfEdges{1, -1, 2, -2, 3, -3, 4, -4, 5, -5};

EdgeNumbers values_of(const std::vector<EdgeStep>& steps, std::int64_t first, std::int64_t last) {
  const EdgeRange range{kEdgeOffsets.data(), kEdgeSources.data(), first, last, 2};
  std::vector<std::vector<float>> memory;
  const float* values = edge_values(steps, range, memory);
  return {values, values + range.edges() * range.heads};
}

}  // namespace

TEST_CASE("edges read their source, their target and themselves", "[rows]") {
  const EdgeStep source{.kind = EdgeKind::kSource, .node = kOfNodes.data()};
  const EdgeStep target{.kind = EdgeKind::kTarget, .node = kOfNodes.data()};
  const EdgeStep edge{.kind = EdgeKind::kEdge, .node = kOfEdges.data()};
  CHECK(values_of({source}, 0, 3) == EdgeNumbers{3, 30, 1, 10, 2, 20, 2, 20, 3, 30});
  CHECK(values_of({target}, 0, 3) == EdgeNumbers{1, 10, 1, 10, 3, 30, 3, 30, 3, 30});
  CHECK(values_of({edge}, 0, 3) == kOfEdges);
  CHECK(values_of({source}, 1, 3) == EdgeNumbers{2, 20, 2, 20, 3, 30});
  CHECK(values_of({target}, 0, 1) == EdgeNumbers{1, 10, 1, 10});
  CHECK(values_of({edge}, 1, 3) == EdgeNumbers{3, -3, 4, -4, 5, -5});
  CHECK(values_of({edge}, 1, 2).empty());
}

TEST_CASE("values of edges are combined step by step", "[rows]") {
  const EdgeStep edge{.kind = EdgeKind::kEdge, .node = kOfEdges.data()};
  const EdgeStep target{.kind = EdgeKind::kTarget, .node = kOfNodes.data()};
  const auto combined = [&](EdgeStep step) {
    step.left = 0;
    step.right = 1;
    return values_of({edge, target, step}, 0, 1);
  };
  CHECK(combined({.kind = EdgeKind::kAdd}) == EdgeNumbers{2, 9, 3, 8});
  CHECK(combined({.kind = EdgeKind::kSubtract}) == EdgeNumbers{0, -11, 1, -12});
  CHECK(combined({.kind = EdgeKind::kMultiply}) == EdgeNumbers{1, -10, 2, -20});
  CHECK(combined({.kind = EdgeKind::kDivide}) == EdgeNumbers{1, -0.1F, 2, -0.2F});
  CHECK(combined({.kind = EdgeKind::kLeakyRelu, .first = 0.5F}) == EdgeNumbers{1, -0.5F, 2, -1});
  CHECK(combined({.kind = EdgeKind::kClamp, .first = -1, .second = 1.5F}) ==
        EdgeNumbers{1, -1, 1.5F, -1});
  CHECK(combined({.kind = EdgeKind::kExp})[2] == std::exp(2.0F));
}

TEST_CASE("values of the edges of a node are folded by head", "[rows]") {
  const EdgeStep edge{.kind = EdgeKind::kEdge, .node = kOfEdges.data()};
  CHECK(values_of({edge, {.kind = EdgeKind::kRowSum}}, 0, 3) ==
        EdgeNumbers{3, -3, 3, -3, 12, -12, 12, -12, 12, -12});
  CHECK(values_of({edge, {.kind = EdgeKind::kRowMax}}, 0, 3) ==
        EdgeNumbers{2, -1, 2, -1, 5, -3, 5, -3, 5, -3});
  EdgeNumbers with_nan = kOfEdges;
  with_nan[0] = std::numeric_limits<float>::quiet_NaN();
  const EdgeStep other{.kind = EdgeKind::kEdge, .node = with_nan.data()};
  const EdgeNumbers most = values_of({other, {.kind = EdgeKind::kRowMax}}, 0, 1);
  CHECK(std::isnan(most[0]));
  CHECK(std::isnan(most[2]));
  CHECK(most[1] == -1);
}
