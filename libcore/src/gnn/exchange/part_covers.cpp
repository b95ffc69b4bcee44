// SPDX-License-Identifier: Apache-2.0
// The least that devices of one machine have to be told of other parts.
//
// Rows of nodes lie in the host's memory between layers, so that what a part on another device
// needs of all other parts comes from one place: the edges into the part are one bipartite graph,
// covered as those between two ranks are (least_exchange.cpp). A part that the host computes reads
// rows where they lie, and nothing crosses. O(edges log edges), and one flow for each part.
#include "gnn/exchange/part_covers.hpp"

#include <algorithm>

#include "gnn/exchange/least_exchange.hpp"
#include "gnn/exchange/rank_cut.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {

std::vector<PartCover> cover_parts(const CsrGraph& in_edges,
                                   const std::vector<std::int32_t>& part_of,
                                   std::int32_t part_count, bool is_max) {
  std::vector<PartCover> covers;
  for_each_part_cut(in_edges, part_of, part_count, [&](std::int32_t part, const CutEdges& cut) {
    PartCover cover{.part = part,
                    .edges = static_cast<std::int64_t>(cut.edges.size()),
                    .sources = static_cast<std::int64_t>(cut.sources.size()),
                    .targets = static_cast<std::int64_t>(cut.targets.size())};
    cover.cover = fewest_rows(cut);
    cover.rows = static_cast<std::int64_t>(cover.cover.size());
    if (cover.saved_rows(is_max) > 0) covers.push_back(std::move(cover));
  });
  return covers;
}

void set_saved_rows(const std::vector<PartCover>& covers, bool is_max,
                    std::vector<SubgraphSize>& sizes) {
  for (const PartCover& cover : covers) {
    for (SubgraphSize& size : sizes) {
      if (size.id == cover.part) size.saved = cover.saved_rows(is_max);
    }
  }
}

}  // namespace npu::gnn
