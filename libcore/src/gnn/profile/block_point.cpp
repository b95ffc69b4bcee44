// SPDX-License-Identifier: Apache-2.0
// Bytes of blocks, and the two halves of a layer that devices do in turns. O(stages^2 * tensors).
#include "gnn/profile/block_point.hpp"

#include <algorithm>

#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

double bytes_at(const StageTensor& tensor, const BlockPoint& point) {
  return tensor.node_bytes * static_cast<double>(point.n) +
         tensor.edge_bytes * static_cast<double>(point.m) + tensor.fixed_bytes;
}

bool runs_all(const std::vector<std::string>& refusals, std::int32_t first, std::int32_t last) {
  return std::all_of(refusals.begin() + first - 1, refusals.begin() + last,
                     [](const std::string& refusal) { return refusal.empty(); });
}

}  // namespace

double block_bytes(const LayerInfo& info, const BlockPoint& point) {
  double bytes = 0;
  for (const StageTensor& tensor : info.tensors) {
    const bool made = tensor.is_made_in(point.first, point.last);
    const bool inside = made && !tensor.consumers.empty() && tensor.consumers.back() <= point.last;
    if (inside) continue;
    if (made || tensor.is_read_in(point.first, point.last)) bytes += bytes_at(tensor, point);
  }
  for (std::int32_t s = point.first; s <= point.last; ++s) {
    bytes += info.stages[index_of(s - 1)].weight_bytes;
  }
  return bytes;
}

double crossing_bytes(const LayerInfo& info, const BlockPoint& front) {
  double bytes = 0;
  for (const StageTensor& tensor : info.tensors) {
    if (tensor.producer < front.first || tensor.producer > front.last) continue;
    const bool is_read = std::any_of(
        tensor.consumers.begin(), tensor.consumers.end(),
        [&](std::int32_t stage) { return stage > front.last && stage <= info.stage_count(); });
    if (is_read) bytes += bytes_at(tensor, front);
  }
  return bytes;
}

std::optional<std::pair<BlockPoint, BlockPoint>> halves_of_layer(
    const std::vector<LayerInfo>& layers, const StageRefusals& refusals, const BlockPoint& size,
    std::int32_t front, std::int32_t back) {
  std::optional<std::pair<BlockPoint, BlockPoint>> best;
  double least = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::int32_t count = layers[l].stage_count();
    const auto layer = static_cast<std::int32_t>(l) + 1;
    for (std::int32_t cut = 1; cut < count; ++cut) {
      if (!runs_all(refusals[index_of(front)][l], 1, cut) ||
          !runs_all(refusals[index_of(back)][l], cut + 1, count)) {
        continue;
      }
      const BlockPoint first{front, layer, 1, cut, size.n, size.m, 0};
      const double bytes = crossing_bytes(layers[l], first);
      if (best && bytes >= least) continue;
      least = bytes;
      best = std::pair(first, BlockPoint{back, layer, cut + 1, count, size.n, size.m, 0});
    }
  }
  return best;
}

}  // namespace npu::gnn
