// SPDX-License-Identifier: Apache-2.0
// Large tensors first, each at the lowest offset at which nothing that lives at the same time is in
// the way. O(n^2 log n) for n tensors.
#include "lowering/scratch_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace npu::opencl {

std::uint64_t plan_scratch(std::vector<ScratchTensor>& tensors) {
  constexpr std::uint64_t kAlignment = 256;
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return tensors[a].bytes > tensors[b].bytes; });
  std::uint64_t end = 0;
  std::vector<std::size_t> placed;
  for (const std::size_t i : order) {
    ScratchTensor& tensor = tensors[i];
    const std::uint64_t bytes = (tensor.bytes + kAlignment - 1) / kAlignment * kAlignment;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (const std::size_t other : placed) {
      const ScratchTensor& neighbour = tensors[other];
      if (neighbour.first <= tensor.last && tensor.first <= neighbour.last) {
        taken.emplace_back(neighbour.offset, neighbour.offset + neighbour.bytes);
      }
    }
    std::ranges::sort(taken);
    std::uint64_t offset = 0;
    for (const auto& [from, to] : taken) {
      if (offset + bytes <= from) break;
      offset = std::max(offset, (to + kAlignment - 1) / kAlignment * kAlignment);
    }
    tensor.offset = offset;
    end = std::max(end, offset + bytes);
    placed.push_back(i);
  }
  return end;
}

}  // namespace npu::opencl
