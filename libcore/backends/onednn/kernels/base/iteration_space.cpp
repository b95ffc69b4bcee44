// SPDX-License-Identifier: Apache-2.0
// Iteration spaces of kernels that walk strided memory: as few dimensions as the strides allow, so
// that the innermost loops are long. O(rank log rank).
#include "kernels/base/iteration_space.hpp"

#include <algorithm>

namespace npu::onednn {

void simplify_space(std::vector<std::int64_t>& extents,
                    const std::vector<std::vector<std::int64_t>*>& lists) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] != 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return (*lists[0])[a] > (*lists[0])[b]; });
  std::vector<std::int64_t> new_extents;
  std::vector<std::vector<std::int64_t>> new_lists(lists.size());
  for (const std::size_t i : order) {
    bool joins = !new_extents.empty();
    for (std::size_t k = 0; joins && k < lists.size(); ++k) {
      joins = new_lists[k].back() == (*lists[k])[i] * extents[i];
    }
    if (joins) {
      new_extents.back() *= extents[i];
      for (std::size_t k = 0; k < lists.size(); ++k) new_lists[k].back() = (*lists[k])[i];
    } else {
      new_extents.push_back(extents[i]);
      for (std::size_t k = 0; k < lists.size(); ++k) new_lists[k].push_back((*lists[k])[i]);
    }
  }
  if (new_extents.empty()) {
    new_extents.push_back(1);
    for (auto& list : new_lists) list.push_back(1);
  }
  extents = std::move(new_extents);
  for (std::size_t k = 0; k < lists.size(); ++k) *lists[k] = std::move(new_lists[k]);
}

}  // namespace npu::onednn
