// SPDX-License-Identifier: Apache-2.0
// The readers of large graphs and features: every format on every input. A graph that is read is
// sound, and the graph that METIS gets is simple and undirected.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "gnn/graph/graph_reader.hpp"
#include "gnn/graph/symmetrize.hpp"
#include "npu/support/error.hpp"

using npu::fuzz::require;

namespace {

void check(const npu::gnn::DataGraph& data) {
  const npu::CsrGraph& graph = data.in_edges;
  require(graph.node_count() >= 1, "a graph has a node");
  require(graph.entry_count() == static_cast<std::int64_t>(graph.neighbors.size()),
          "rows cover the neighbours");
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    const auto row = graph.row(v);
    require(std::is_sorted(row.begin(), row.end()), "rows ascend");
    for (const std::int32_t u : row) require(u >= 0 && u < graph.node_count(), "ends are nodes");
  }
  const npu::gnn::SymmetrizedGraph simple = npu::gnn::symmetrize(graph);
  require(npu::undirected_graph_fault(simple.graph).empty(), "METIS gets an undirected graph");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const npu::gnn::GraphFormat format :
       {npu::gnn::GraphFormat::kAuto, npu::gnn::GraphFormat::kMatrixMarket,
        npu::gnn::GraphFormat::kMetis, npu::gnn::GraphFormat::kEdgeList,
        npu::gnn::GraphFormat::kSafetensors, npu::gnn::GraphFormat::kBinary}) {
    npu::gnn::GraphReadOptions options;
    options.format = format;
    try {
      // A few bytes may promise two thousand million nodes: legal, but no test of anything.
      const npu::gnn::DataGraph graph =
          npu::gnn::parse_graph(bytes.substr(0, 4096), "fuzz", options);
      if (graph.in_edges.node_count() < (1 << 20)) check(graph);
    } catch (const npu::Error& error) {
      // A header inside the file is named behind it.
      require(!error.message().empty() && error.location().file.starts_with("fuzz"),
              "errors say what and where");
    } catch (const std::bad_alloc&) {
    }
  }
  return 0;
}
