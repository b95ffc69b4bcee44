// SPDX-License-Identifier: Apache-2.0
// What a rank takes of a plan for several.
#include "gnn/ranks/rank_parts.hpp"

#include "catch.hpp"

using namespace npu;
using namespace npu::gnn;

TEST_CASE("a rank's plan has its own parts only", "[gnn][ranks]") {
  GnnPlan plan;
  plan.choice.k = 3;
  plan.choice.ranks.emplace().ranks = {{.parts = {2, 0}}, {.parts = {1}}};
  plan.choice.clusters = {{1, 0, {0, 1}}, {1, 1, {2}}, {2, 0, {1}}};
  const GnnPlan own = plan_of_rank(plan, 1);
  CHECK(own.choice.clusters == std::vector<PlanCluster>{{1, 0, {1}}, {2, 0, {1}}});
}
