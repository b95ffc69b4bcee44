// SPDX-License-Identifier: Apache-2.0
// All placements of a small problem, by depth-first branch and bound.
//
// A branch is cut off when the cost of the items placed plus the least cost of the rest reaches the
// best known placement. Items are in topological order, so that a tensor's price is known early.
// Exponential in the items; gives up after kMaxVisits steps.
#include "partition/placement/exhaustive_search.hpp"

#include <algorithm>

#include "npu/support/ids.hpp"

namespace npu {
namespace {

constexpr std::int64_t kMaxVisits = 3'000'000;

}  // namespace

ExhaustiveSearch::ExhaustiveSearch(const PlacementProblem& problem) : problem_(problem) {
  std::vector<std::int32_t> position(problem.items, -1);
  for (const std::int32_t fused_node : problem.fused.order) {
    const std::int32_t item = problem.item_of[index_of(fused_node)];
    if (position[index_of(item)] >= 0) continue;
    position[index_of(item)] = static_cast<std::int32_t>(order_.size());
    order_.push_back(item);
  }
  complete_at_.resize(order_.size());
  for (std::size_t t = 0; t < problem.tensors.size(); ++t) {
    std::int32_t last = position[index_of(problem.tensors[t].producer)];
    for (const std::int32_t reader : problem.readers_of(problem.tensors[t])) {
      last = std::max(last, position[index_of(reader)]);
    }
    complete_at_[index_of(last)].push_back(t);
  }
  rest_.assign(order_.size() + 1, 0);
  for (std::size_t i = order_.size(); i-- > 0;) {
    std::int64_t least = kNever;
    for (std::size_t d = 0; d < problem.devices; ++d) {
      least = std::min(least, problem.cost_of(order_[i], static_cast<std::int32_t>(d)));
    }
    rest_[i] = rest_[i + 1] + least;
  }
  least_launch_ = *std::min_element(problem.launch.begin(), problem.launch.end());
}

bool ExhaustiveSearch::run(std::int64_t best, const Consider& consider) {
  assignment_ = problem_.tagged;
  best_ = best;
  visits_ = 0;
  return visit(0, 0, consider);
}

bool ExhaustiveSearch::visit(std::size_t depth, std::int64_t cost, const Consider& consider) {
  if (++visits_ > kMaxVisits) return false;
  if (depth == order_.size()) {
    best_ = consider(assignment_);
    return true;
  }
  const std::int32_t item = order_[depth];
  for (std::size_t d = 0; d < problem_.devices; ++d) {
    const auto device = static_cast<std::int32_t>(d);
    const std::int64_t here = problem_.cost_of(item, device);
    if (here == kNever) continue;
    assignment_[index_of(item)] = device;
    std::int64_t next = cost + here;
    for (const std::size_t t : complete_at_[depth]) next += tensor_cost(problem_, assignment_, t);
    if (next + rest_[depth + 1] + least_launch_ >= best_) continue;
    if (!visit(depth + 1, next, consider)) return false;
  }
  return true;
}

}  // namespace npu
