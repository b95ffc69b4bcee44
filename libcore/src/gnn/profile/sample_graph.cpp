// SPDX-License-Identifier: Apache-2.0
// Graphs to measure on: random, the same for the same sizes. O(nodes + edges).
#include "gnn/profile/sample_graph.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "gnn/block/tensor_rows.hpp"
#include "npu/support/ids.hpp"
#include "support/mixed.hpp"

namespace npu::gnn {
namespace {

double unit(std::uint64_t value) { return static_cast<double>(mixed(value) >> 11) * 0x1p-53; }

// A node of n, drawn with a density that falls with its rank; the ranks are scattered.
std::int64_t skewed_node(std::uint64_t draw, std::int64_t n) {
  const double u = unit(draw);
  const auto rank = static_cast<std::uint64_t>(u * u * static_cast<double>(n));
  return static_cast<std::int64_t>(mixed(rank * 2 + 1) % static_cast<std::uint64_t>(n));
}

}  // namespace

SubgraphView skewed_graph(std::int64_t owned, std::int64_t halo, std::int64_t edges) {
  SubgraphView work;
  work.owned = owned;
  work.local = owned + halo;
  std::vector<std::int64_t> offsets(index_of(owned) + 1, 0);
  for (std::int64_t e = 0; e < edges; ++e) {
    ++offsets[index_of(skewed_node(3 * static_cast<std::uint64_t>(e) + 1, owned)) + 1];
  }
  for (std::int64_t v = 0; v < owned; ++v) {
    offsets[index_of(v) + 1] += offsets[index_of(v)];
  }
  work.offsets = std::move(offsets);
  std::vector<std::int32_t> sources(index_of(edges));
  for (std::int64_t e = 0; e < edges; ++e) {
    sources[index_of(e)] =
        static_cast<std::int32_t>(skewed_node(3 * static_cast<std::uint64_t>(e) + 2, work.local));
  }
  work.sources = std::move(sources);
  return work;
}

SubgraphView part_of_larger_graph(const SubgraphView& graph, std::int64_t all, std::int32_t run) {
  SubgraphView part = graph;
  all = std::max(all, graph.local);
  const std::int64_t shift = run * std::int64_t{7919};
  std::vector<std::int32_t> nodes(index_of(graph.local));
  for (std::int64_t v = 0; v < graph.local; ++v) {
    nodes[index_of(v)] = static_cast<std::int32_t>((v * all / graph.local + shift) % all);
  }
  part.nodes = std::move(nodes);
  // Most of what a part reads belongs to other ones: sources lie anywhere.
  std::vector<std::int32_t> sources(part.sources.size());
  auto draw = static_cast<std::uint64_t>(shift);
  for (std::int32_t& source : sources) {
    source = static_cast<std::int32_t>(skewed_node(++draw, all));
  }
  part.base_sources = std::move(sources);
  return part;
}

Tensor filled(DType dtype, Shape shape, std::uint64_t seed) {
  Tensor tensor(dtype, std::move(shape));
  if (dtype == DType::kFloat32) {
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      tensor.as_mutable<float>()[i] =
          static_cast<float>(unit(seed + static_cast<std::uint64_t>(i)) * 2 - 1);
    }
  }
  return tensor;
}

void store_outputs(const std::map<std::string, Tensor>& outputs, const SubgraphView& part) {
  std::vector<std::int32_t> rows(index_of(part.owned));
  std::iota(rows.begin(), rows.end(), 0);
  for (const auto& [name, value] : outputs) {
    if (value.shape().empty() || value.shape()[0] < part.owned) continue;
    Tensor target(value.dtype(), value.shape());
    scatter_rows(value, rows.data(), part.owned, target);
  }
}

}  // namespace npu::gnn
