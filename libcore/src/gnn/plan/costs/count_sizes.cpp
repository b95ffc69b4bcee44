// SPDX-License-Identifier: Apache-2.0
// Sizes of parts as npu-gnn(5) defines them, with sets instead of the marks of halo.cpp.
#include "gnn/plan/costs/count_sizes.hpp"

#include <set>

#include "npu/support/ids.hpp"

namespace npu::gnn {

std::map<std::int64_t, SubgraphSize> count_sizes(const CsrGraph& graph,
                                                 const std::vector<std::int32_t>& part_of) {
  std::map<std::int64_t, SubgraphSize> sizes;
  std::map<std::int64_t, std::set<std::int32_t>> halo;
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    const std::int32_t part = part_of[index_of(v)];
    SubgraphSize& size = sizes[part];
    size.id = part;
    ++size.n;
    for (const std::int32_t u : graph.row(v)) {
      ++size.m;
      if (part_of[index_of(u)] == part) continue;
      ++size.cut_edges;
      halo[part].insert(u);
    }
  }
  for (auto& [part, size] : sizes) {
    size.halo = static_cast<std::int64_t>(halo[part].size());
    size.n += size.halo;
  }
  return sizes;
}

}  // namespace npu::gnn
