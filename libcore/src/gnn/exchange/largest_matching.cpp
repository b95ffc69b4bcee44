// SPDX-License-Identifier: Apache-2.0
// A largest matching of a bipartite graph by Hopcroft and Karp (SIAM J. Comput. 1973), with which
// the check of a plan proves what the plan's flow claims. Paths are followed without recursion, for
// they can be as long as the graph. O(edges * sqrt(nodes)).
#include <limits>

#include "gnn/exchange/least_exchange.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

constexpr std::int32_t kUnmatched = -1;
constexpr std::int32_t kNotReached = std::numeric_limits<std::int32_t>::max();

class Matcher {
 public:
  explicit Matcher(const CutEdges& cut)
      : cut_(cut),
        offsets_(cut.sources.size() + 1, 0),
        match_of_source_(cut.sources.size(), kUnmatched),
        match_of_target_(cut.targets.size(), kUnmatched) {
    for (const auto& [source, target] : cut.edges) ++offsets_[index_of(source) + 1];
    for (std::size_t s = 0; s < cut.sources.size(); ++s) offsets_[s + 1] += offsets_[s];
  }

  std::int64_t run() {
    std::int64_t size = 0;
    while (find_levels()) {
      next_.assign(offsets_.begin(), offsets_.end() - 1);
      for (std::size_t s = 0; s < match_of_source_.size(); ++s) {
        if (match_of_source_[s] == kUnmatched && augment(static_cast<std::int32_t>(s))) ++size;
      }
    }
    return size;
  }

 private:
  // Distances of sources from free ones over alternating paths; false if none ends at a free
  // target.
  bool find_levels() {
    level_.assign(match_of_source_.size(), kNotReached);
    std::vector<std::int32_t> queue;
    for (std::size_t s = 0; s < match_of_source_.size(); ++s) {
      if (match_of_source_[s] != kUnmatched) continue;
      level_[s] = 0;
      queue.push_back(static_cast<std::int32_t>(s));
    }
    bool ends = false;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const auto s = index_of(queue[i]);
      for (std::size_t e = offsets_[s]; e < offsets_[s + 1]; ++e) {
        const std::int32_t partner = match_of_target_[index_of(cut_.edges[e].second)];
        if (partner == kUnmatched) {
          ends = true;
        } else if (level_[index_of(partner)] == kNotReached) {
          level_[index_of(partner)] = level_[s] + 1;
          queue.push_back(partner);
        }
      }
    }
    return ends;
  }

  // Follows a shortest path from a free source to a free target and exchanges its edges.
  bool augment(std::int32_t root) {
    std::vector<std::int32_t> path{root};
    while (!path.empty()) {
      const auto s = index_of(path.back());
      if (next_[s] == offsets_[s + 1]) {
        level_[s] = kNotReached;
        path.pop_back();
        if (!path.empty()) ++next_[index_of(path.back())];
        continue;
      }
      const std::int32_t partner = match_of_target_[index_of(cut_.edges[next_[s]].second)];
      if (partner == kUnmatched) {
        take(path);
        return true;
      }
      if (level_[index_of(partner)] == level_[s] + 1) {
        path.push_back(partner);
      } else {
        ++next_[s];
      }
    }
    return false;
  }

  void take(const std::vector<std::int32_t>& path) {
    for (const std::int32_t source : path) {
      const std::int32_t target = cut_.edges[next_[index_of(source)]].second;
      match_of_source_[index_of(source)] = target;
      match_of_target_[index_of(target)] = source;
      level_[index_of(source)] = kNotReached;
    }
  }

  const CutEdges& cut_;
  std::vector<std::size_t> offsets_;  // of the edges of each source
  std::vector<std::size_t> next_;     // edge to look at, by source
  std::vector<std::int32_t> match_of_source_;
  std::vector<std::int32_t> match_of_target_;
  std::vector<std::int32_t> level_;  // by source
};

}  // namespace

std::int64_t largest_matching(const CutEdges& cut) { return Matcher(cut).run(); }

}  // namespace npu::gnn
