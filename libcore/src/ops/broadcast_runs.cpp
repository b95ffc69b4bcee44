// SPDX-License-Identifier: Apache-2.0
// Dimensions that a tensor is repeated along, and those between them, as four loops. Dimensions of
// one element belong to either. O(rank).
#include "ops/broadcast_runs.hpp"

#include <cstddef>
#include <iterator>
#include <utility>

namespace npu {
namespace {

/// Both shapes with dimension 1 last, `part` with as many dimensions as `whole`.
std::pair<Shape, Shape> with_channels_last(const Shape& whole, const Shape& part) {
  Shape full(whole.size() - part.size(), 1);
  full.insert(full.end(), part.begin(), part.end());
  Shape ordered = whole;
  for (Shape* shape : {&ordered, &full}) {
    const std::int64_t channels = (*shape)[1];
    shape->erase(shape->begin() + 1);
    shape->push_back(channels);
  }
  return {std::move(ordered), std::move(full)};
}

}  // namespace

std::optional<BroadcastRuns> broadcast_runs(const Shape& whole, const Shape& part) {
  if (part.size() > whole.size()) return std::nullopt;
  const std::size_t missing = whole.size() - part.size();
  BroadcastRuns runs;
  // From the last dimension: inner, inner_repeat, outer, repeat.
  std::int64_t* const loops[]{&runs.inner, &runs.inner_repeat, &runs.outer, &runs.repeat};
  std::size_t loop = 0;
  for (std::size_t i = whole.size(); i-- > 0;) {
    const std::int64_t extent = i < missing ? 1 : part[i - missing];
    if (whole[i] == 1 && extent == 1) continue;
    if (extent != 1 && extent != whole[i]) return std::nullopt;
    const bool is_repeated = extent == 1;
    if ((loop % 2 == 1) != is_repeated) ++loop;
    if (loop >= std::size(loops)) return std::nullopt;
    *loops[loop] *= whole[i];
  }
  return runs;
}

std::optional<BroadcastRuns> broadcast_runs_of_channels(const Shape& whole, const Shape& part) {
  if (part.size() > whole.size()) return std::nullopt;
  if (whole.size() < 2) return broadcast_runs(whole, part);
  const auto [ordered, full] = with_channels_last(whole, part);
  return broadcast_runs(ordered, full);
}

bool has_broadcast_runs(const Shape& whole, const Shape& part) {
  const bool has_channels = whole.size() >= 3 && whole.size() <= 5;
  return broadcast_runs(whole, part) && (!has_channels || broadcast_runs_of_channels(whole, part));
}

}  // namespace npu
