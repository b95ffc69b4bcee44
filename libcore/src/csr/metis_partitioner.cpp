// SPDX-License-Identifier: Apache-2.0
// Graph partitioning by METIS 5 (Karypis and Kumar, SIAM J. Sci. Comput. 1998), and what it takes
// to survive it. METIS 5.1.0 divides by zero for one part and for one node, prints to stdout and
// reports success when there are more parts than nodes, leaves parts empty when there are nearly as
// many as nodes, and returns negative cuts for graphs that are not symmetric. So everything is
// checked before the call and recomputed after it.
//
// Input: an undirected graph with weights. Output: parts, none of them empty. Cost besides METIS's:
// O(entries) for the checks, and O(entries of one part) for each empty part that is filled.
#include "csr/metis_partitioner.hpp"

#include <metis.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>

#include "csr/finish_partition.hpp"
#include "csr/graph_weights.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "support/checked.hpp"
#include "support/quiet_stdout.hpp"

namespace npu {
namespace {

// The weights scaled so that their sum fits METIS's integers with room to spare. A weight that is
// not 0 stays at least 1.
std::vector<idx_t> scaled_weights(const std::vector<std::int64_t>& values, std::size_t begin,
                                  std::size_t stride) {
  const double limit = static_cast<double>(std::numeric_limits<idx_t>::max()) / 4;
  double sum = 0;
  double count = 0;
  for (std::size_t i = begin; i < values.size(); i += stride) {
    sum += static_cast<double>(values[i]);
    count += 1;
  }
  // Rounding up to 1 adds at most `count`, so room is left for that.
  const double factor = sum + count <= limit ? 1 : std::max(limit - count, 1.0) / sum;
  std::vector<idx_t> scaled;
  scaled.reserve(values.size() / stride + 1);
  for (std::size_t i = begin; i < values.size(); i += stride) {
    const double value = factor == 1 ? static_cast<double>(values[i])
                                     : std::floor(static_cast<double>(values[i]) * factor);
    scaled.push_back(values[i] > 0 ? static_cast<idx_t>(std::max(value, 1.0)) : 0);
  }
  return scaled;
}

// METIS's view of a graph. METIS takes the arrays as non-const, but does not write to them.
struct MetisGraph {
  idx_t nvtxs = 0;
  idx_t ncon = 1;
  std::vector<idx_t> xadj;
  std::vector<idx_t> own_adjncy;
  idx_t* adjncy = nullptr;
  std::vector<idx_t> vwgt;
  std::vector<idx_t> adjwgt;
  std::vector<std::int32_t> constraints;  // which node weights are used

  explicit MetisGraph(const CsrGraph& graph) : nvtxs(graph.node_count()) {
    xadj.assign(graph.offsets.begin(), graph.offsets.end());
    if constexpr (std::is_same_v<idx_t, std::int32_t>) {
      adjncy = const_cast<std::int32_t*>(graph.neighbors.data());
    } else {
      own_adjncy.assign(graph.neighbors.begin(), graph.neighbors.end());
      adjncy = own_adjncy.data();
    }
    if (!graph.edge_weights.empty()) adjwgt = scaled_weights(graph.edge_weights, 0, 1);
    if (graph.node_weights.empty()) {
      constraints.push_back(0);
      return;
    }
    // A weight that is 0 everywhere is not a constraint; METIS would divide by its sum.
    const auto stride = index_of(graph.node_weight_count);
    std::vector<std::vector<idx_t>> columns;
    for (std::int32_t c = 0; c < graph.node_weight_count; ++c) {
      auto column = scaled_weights(graph.node_weights, index_of(c), stride);
      if (std::all_of(column.begin(), column.end(), [](idx_t w) { return w == 0; })) continue;
      columns.push_back(std::move(column));
      constraints.push_back(c);
    }
    if (columns.empty()) {
      constraints.push_back(0);
      return;
    }
    ncon = static_cast<idx_t>(columns.size());
    for (std::size_t v = 0; v < index_of(nvtxs); ++v) {
      for (const auto& column : columns) vwgt.push_back(column[v]);
    }
  }
};

void check_request(const CsrGraph& graph, const MetisOptions& options) {
  check_cut(graph, options);
  if (graph.entry_count() > std::numeric_limits<idx_t>::max()) {
    throw Error(ErrorCode::kUnsupported, "the graph has " + std::to_string(graph.entry_count()) +
                                             " adjacency entries, METIS takes at most " +
                                             std::to_string(std::numeric_limits<idx_t>::max()));
  }
}

std::vector<std::int32_t> run_metis(const MetisGraph& metis, const MetisOptions& options,
                                    std::uint64_t seed, bool minimize_volume) {
  std::array<idx_t, METIS_NOPTIONS> settings{};
  METIS_SetDefaultOptions(settings.data());
  settings[METIS_OPTION_NUMBERING] = 0;
  // -1 means "no seed"; any other value of 31 bits will do.
  settings[METIS_OPTION_SEED] = static_cast<idx_t>(seed & 0x7fffffff);
  settings[METIS_OPTION_OBJTYPE] = minimize_volume ? METIS_OBJTYPE_VOL : METIS_OBJTYPE_CUT;
  std::vector<real_t> limits;
  for (const std::int32_t c : metis.constraints) {
    limits.push_back(static_cast<real_t>(
        options.max_imbalance[std::min(index_of(c), options.max_imbalance.size() - 1)]));
  }
  std::vector<real_t> shares;
  for (const double share : options.target_shares) {
    shares.insert(shares.end(), index_of(metis.ncon), static_cast<real_t>(share));
  }
  idx_t nvtxs = metis.nvtxs;
  idx_t ncon = metis.ncon;
  idx_t nparts = options.part_count;
  idx_t objective = 0;
  std::vector<idx_t> part(index_of(nvtxs), 0);
  const auto data = [](const std::vector<idx_t>& values) {
    return values.empty() ? nullptr : const_cast<idx_t*>(values.data());
  };
  const QuietStdout quiet;
  // The volume objective ignores edge weights.
  const int status =
      METIS_PartGraphKway(&nvtxs, &ncon, data(metis.xadj), metis.adjncy, data(metis.vwgt), nullptr,
                          minimize_volume ? nullptr : data(metis.adjwgt), &nparts,
                          shares.empty() ? nullptr : shares.data(), limits.data(), settings.data(),
                          &objective, part.data());
  if (status == METIS_ERROR_MEMORY) {
    throw Error(ErrorCode::kInfeasible, "METIS ran out of memory");
  }
  if (status != METIS_OK) {
    throw Error(ErrorCode::kUnsupported, "METIS failed with status " + std::to_string(status));
  }
  for (const idx_t p : part) {
    if (p < 0 || p >= nparts) {
      throw Error(ErrorCode::kUnsupported, "METIS put a node into part " + std::to_string(p) +
                                               " of " + std::to_string(nparts));
    }
  }
  return {part.begin(), part.end()};
}

// A node's share of all weights, summed over the constraints.
double relative_weight(const CsrGraph& graph, const std::vector<double>& totals, std::int32_t v) {
  double sum = 0;
  for (std::int32_t c = 0; c < graph.node_weight_count; ++c) {
    if (totals[index_of(c)] > 0) {
      sum += static_cast<double>(node_weight(graph, v, c)) / totals[index_of(c)];
    }
  }
  return sum;
}

std::vector<double> total_weights(const CsrGraph& graph) {
  std::vector<double> totals(index_of(graph.node_weight_count), 0);
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    for (std::int32_t c = 0; c < graph.node_weight_count; ++c) {
      totals[index_of(c)] += static_cast<double>(node_weight(graph, v, c));
    }
  }
  return totals;
}

// Without edges only balance matters: assigns the heaviest nodes first, each to the lightest part,
// with ties to the part with the fewest nodes, so that no part stays empty.
std::vector<std::int32_t> balance_only(const CsrGraph& graph, std::int32_t part_count) {
  const auto totals = total_weights(graph);
  std::vector<std::int32_t> order(index_of(graph.node_count()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> weights;
  for (const std::int32_t v : order) weights.push_back(relative_weight(graph, totals, v));
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return weights[index_of(a)] > weights[index_of(b)];
  });
  using Load = std::tuple<double, std::int64_t, std::int32_t>;  // weight, nodes, part
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::int32_t p = 0; p < part_count; ++p) loads.emplace(0.0, 0, p);
  std::vector<std::int32_t> part_of(order.size(), 0);
  for (const std::int32_t v : order) {
    auto [weight, nodes, part] = loads.top();
    loads.pop();
    part_of[index_of(v)] = part;
    loads.emplace(weight + weights[index_of(v)], nodes + 1, part);
  }
  return part_of;
}

}  // namespace

GraphPartition partition_with_metis(const CsrGraph& graph, const MetisOptions& options) {
  check_request(graph, options);
  const bool needs_metis =
      options.part_count > 1 && options.part_count < graph.node_count() && graph.entry_count() > 0;
  const auto finished = [&](std::vector<std::int32_t> part_of, std::uint64_t seed) {
    return finish_partition(graph, options.part_count, std::move(part_of), seed);
  };
  GraphPartition best;
  if (options.part_count == 1) {
    best = finished(std::vector<std::int32_t>(index_of(graph.node_count()), 0), options.seed);
  } else if (!needs_metis) {
    best = finished(balance_only(graph, options.part_count), options.seed);
  } else {
    const MetisGraph metis(graph);
    std::optional<std::pair<std::int64_t, std::int64_t>> best_rank;
    for (std::int32_t i = 0; i < options.seed_count; ++i) {
      const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
      for (const bool volume : {false, true}) {
        if (volume && !options.minimize_volume) continue;
        GraphPartition candidate = finished(run_metis(metis, options, seed, volume), seed);
        const auto rank = partition_rank(graph, options, candidate);
        if (best_rank && rank >= *best_rank) continue;
        best_rank = rank;
        best = std::move(candidate);
      }
    }
  }
  return best;
}

std::string partition_hash(const std::vector<std::int32_t>& part_of) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::int32_t part : part_of) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash ^= (static_cast<std::uint32_t>(part) >> shift) & 0xff;
      hash *= 0x100000001b3;
    }
  }
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4) text[i] = "0123456789abcdef"[hash & 15];
  return text;
}

std::int64_t edge_cut_of(const CsrGraph& graph, const std::vector<std::int32_t>& part_of) {
  std::int64_t cut = 0;
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    for (std::int64_t e = graph.offsets[index_of(v)]; e < graph.offsets[index_of(v) + 1]; ++e) {
      const std::int32_t u = graph.neighbors[index_of(e)];
      if (u < v || part_of[index_of(u)] == part_of[index_of(v)]) continue;
      cut = saturating_add(cut, edge_weight(graph, e));
    }
  }
  return cut;
}

std::int64_t volume_of(const CsrGraph& graph, const std::vector<std::int32_t>& part_of,
                       std::int32_t part_count) {
  std::vector<std::int32_t> last_reader(index_of(part_count),
                                        -1);  // by part: the last node counted
  std::int64_t volume = 0;
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    for (const std::int32_t u : graph.row(v)) {
      const std::int32_t reader = part_of[index_of(u)];
      if (reader == part_of[index_of(v)] || last_reader[index_of(reader)] == v) continue;
      last_reader[index_of(reader)] = v;
      ++volume;
    }
  }
  return volume;
}

std::vector<double> imbalance_of(const CsrGraph& graph, const std::vector<std::int32_t>& part_of,
                                 std::int32_t part_count) {
  std::vector<double> imbalance;
  for (std::int32_t c = 0; c < graph.node_weight_count; ++c) {
    std::vector<double> weights(index_of(part_count), 0);
    double total = 0;
    for (std::int32_t v = 0; v < graph.node_count(); ++v) {
      const auto weight = static_cast<double>(node_weight(graph, v, c));
      weights[index_of(part_of[index_of(v)])] += weight;
      total += weight;
    }
    const double heaviest = *std::max_element(weights.begin(), weights.end());
    imbalance.push_back(total > 0 ? heaviest * part_count / total : 1);
  }
  return imbalance;
}

}  // namespace npu
