// SPDX-License-Identifier: Apache-2.0
// Parts of a graph with their halo: the nodes of other parts that owned nodes read. One pass over
// the rows of each part; a node's last visitor marks it, so nothing is cleared in between:
// O(nodes + edges) for all parts together.
#include "npu/graph/halo.hpp"

namespace npu {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

std::vector<std::vector<std::int32_t>> members_of(const std::vector<std::int32_t>& part_of,
                                                  std::int32_t part_count) {
  std::vector<std::vector<std::int32_t>> members(at(part_count));
  for (std::size_t v = 0; v < part_of.size(); ++v) {
    members[at(part_of[v])].push_back(static_cast<std::int32_t>(v));
  }
  return members;
}

}  // namespace

std::vector<SubgraphSize> subgraph_sizes(const CsrGraph& in_edges,
                                         const std::vector<std::int32_t>& part_of,
                                         std::int32_t part_count) {
  const auto members = members_of(part_of, part_count);
  std::vector<std::int32_t> seen_by(part_of.size(), -1);
  std::vector<SubgraphSize> sizes(at(part_count));
  for (std::int32_t p = 0; p < part_count; ++p) {
    SubgraphSize& size = sizes[at(p)];
    size.id = p;
    for (const std::int32_t v : members[at(p)]) {
      size.m += in_edges.degree(v);
      for (const std::int32_t u : in_edges.row(v)) {
        if (part_of[at(u)] == p) continue;
        ++size.cut_edges;
        if (seen_by[at(u)] == p) continue;
        seen_by[at(u)] = p;
        ++size.halo;
      }
    }
    size.n = static_cast<std::int64_t>(members[at(p)].size()) + size.halo;
  }
  return sizes;
}

std::vector<Subgraph> extract_subgraphs(const CsrGraph& in_edges,
                                        const std::vector<std::int32_t>& part_of,
                                        std::int32_t part_count) {
  std::vector<Subgraph> parts(at(part_count));
  auto members = members_of(part_of, part_count);
  std::vector<std::int32_t> local(part_of.size(), -1);
  for (std::int32_t p = 0; p < part_count; ++p) {
    Subgraph& part = parts[at(p)];
    part.nodes = std::move(members[at(p)]);
    part.owned = static_cast<std::int64_t>(part.nodes.size());
    for (std::size_t i = 0; i < part.nodes.size(); ++i) {
      local[at(part.nodes[i])] = static_cast<std::int32_t>(i);
    }
    part.offsets.reserve(at(part.owned) + 1);
    part.offsets.push_back(0);
    for (std::int64_t i = 0; i < part.owned; ++i) {
      for (const std::int32_t u : in_edges.row(part.nodes[at(i)])) {
        if (local[at(u)] < 0) {
          local[at(u)] = static_cast<std::int32_t>(part.nodes.size());
          part.nodes.push_back(u);
        }
        part.sources.push_back(local[at(u)]);
      }
      part.offsets.push_back(static_cast<std::int64_t>(part.sources.size()));
    }
    for (const std::int32_t v : part.nodes) local[at(v)] = -1;
  }
  return parts;
}

}  // namespace npu
