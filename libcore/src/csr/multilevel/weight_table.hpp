// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "npu/support/ids.hpp"
#include "support/checked.hpp"
#include "support/mixed.hpp"

namespace npu {

/// Sums of weights by label, for one node at a time: an open table whose size goes by the node's
/// degree and not by the number of labels.
class WeightTable {
 public:
  /// Forgets all sums and makes room for as many labels.
  void reset(std::int64_t labels) {
    for (const std::size_t slot : used_) slots_[slot].first = kFree;
    used_.clear();
    const std::size_t wanted = std::bit_ceil(2 * index_of(labels) + 2);
    if (wanted > slots_.size()) slots_.assign(wanted, {kFree, 0});
    mask_ = wanted - 1;
  }

  void add(std::int32_t label, std::int64_t weight) {
    std::size_t slot = static_cast<std::size_t>(mixed(static_cast<std::uint32_t>(label))) & mask_;
    while (slots_[slot].first != label) {
      if (slots_[slot].first == kFree) {
        slots_[slot] = {label, 0};
        used_.push_back(slot);
        break;
      }
      slot = (slot + 1) & mask_;
    }
    slots_[slot].second = saturating_add(slots_[slot].second, weight);
  }

  std::size_t size() const noexcept { return used_.size(); }
  /// The i-th label that was added, and its sum.
  const std::pair<std::int32_t, std::int64_t>& entry(std::size_t i) const {
    return slots_[used_[i]];
  }

 private:
  static constexpr std::int32_t kFree = -1;
  std::vector<std::pair<std::int32_t, std::int64_t>> slots_;
  std::vector<std::size_t> used_;
  std::size_t mask_ = 0;
};

}  // namespace npu
