// SPDX-License-Identifier: Apache-2.0
// Parts of a graph with their halo: the nodes of other parts that owned nodes read. One pass over
// the rows of each part; a node's last visitor marks it, so nothing is cleared in between:
// O(nodes + edges) for all parts together.
#include "gnn/graph/halo.hpp"

#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

std::vector<std::vector<std::int32_t>> members_of(const std::vector<std::int32_t>& part_of,
                                                  std::int32_t part_count) {
  std::vector<std::vector<std::int32_t>> members(index_of(part_count));
  for (std::size_t v = 0; v < part_of.size(); ++v) {
    members[index_of(part_of[v])].push_back(static_cast<std::int32_t>(v));
  }
  return members;
}

}  // namespace

std::vector<SubgraphSize> subgraph_sizes(const CsrGraph& in_edges,
                                         const std::vector<std::int32_t>& part_of,
                                         std::int32_t part_count) {
  const auto members = members_of(part_of, part_count);
  std::vector<std::int32_t> seen_by(part_of.size(), -1);
  std::vector<SubgraphSize> sizes(index_of(part_count));
  for (std::int32_t p = 0; p < part_count; ++p) {
    SubgraphSize& size = sizes[index_of(p)];
    size.id = p;
    for (const std::int32_t v : members[index_of(p)]) {
      size.m += in_edges.degree(v);
      for (const std::int32_t u : in_edges.row(v)) {
        if (part_of[index_of(u)] == p) continue;
        ++size.cut_edges;
        if (seen_by[index_of(u)] == p) continue;
        seen_by[index_of(u)] = p;
        ++size.halo;
      }
    }
    size.n = static_cast<std::int64_t>(members[index_of(p)].size()) + size.halo;
  }
  return sizes;
}

std::vector<Subgraph> extract_subgraphs(const CsrGraph& in_edges,
                                        const std::vector<std::int32_t>& part_of,
                                        std::int32_t part_count) {
  std::vector<Subgraph> parts(index_of(part_count));
  auto members = members_of(part_of, part_count);
  std::vector<std::int32_t> local(part_of.size(), -1);
  for (std::int32_t p = 0; p < part_count; ++p) {
    Subgraph& part = parts[index_of(p)];
    part.nodes = std::move(members[index_of(p)]);
    part.owned = static_cast<std::int64_t>(part.nodes.size());
    for (std::size_t i = 0; i < part.nodes.size(); ++i) {
      local[index_of(part.nodes[i])] = static_cast<std::int32_t>(i);
    }
    part.offsets.reserve(index_of(part.owned) + 1);
    part.offsets.push_back(0);
    for (std::int64_t i = 0; i < part.owned; ++i) {
      for (const std::int32_t u : in_edges.row(part.nodes[index_of(i)])) {
        if (local[index_of(u)] < 0) {
          local[index_of(u)] = static_cast<std::int32_t>(part.nodes.size());
          part.nodes.push_back(u);
        }
        part.sources.push_back(local[index_of(u)]);
      }
      part.offsets.push_back(static_cast<std::int64_t>(part.sources.size()));
    }
    for (const std::int32_t v : part.nodes) local[index_of(v)] = -1;
  }
  return parts;
}

}  // namespace npu::gnn
