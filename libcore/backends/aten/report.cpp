// SPDX-License-Identifier: Apache-2.0
// What a blob says of itself, which is a sub-IR: whether its states are written where they lie.
// That is so if every op from the input to the output has a form for it, and nothing else holds the
// tensor then; views of it do. O(nodes).
#include <algorithm>

#include "boundary.hpp"
#include "ir/states_section.hpp"
#include "ir/sub_ir_aliases.hpp"
#include "npu/ir/json_reader.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::aten {
namespace {

bool is_written_in_place(const Graph& graph, const AliasPair& pair) {
  const State state{.name = {},
                    .input = graph.tensor(graph.graph_inputs()[pair.input]).name,
                    .output = graph.tensor(graph.graph_outputs()[pair.output]).name,
                    .axis = {}};
  const std::vector<TensorId> chain = chain_in_place(graph, state);
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    const NodeId writer = graph.tensor(chain[i]).producer;
    const auto& readers = graph.tensor(chain[i + 1]).consumers;
    const bool holds = std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
      return reader > writer || (reader != writer && is_alias_node(graph, graph.node(reader)));
    });
    if (holds) return false;
  }
  return !chain.empty();
}

}  // namespace

npu_status blob_report(npu_device* device, const void* blob, std::uint64_t blob_size,
                       const npu_writer* report, npu_error* error) {
  return guarded(error, [&] {
    require_given(device, report);
    const Graph graph = read_valid_graph(blob_text(blob, blob_size), "blob");
    Json aliases = Json::object();
    for (const AliasPair& pair : read_aliases(graph)) {
      aliases[graph.tensor(graph.graph_outputs()[pair.output]).name] =
          is_written_in_place(graph, pair) ? "in_place" : "copied";
    }
    const std::string text = Json{{"aliases", std::move(aliases)}}.dump();
    pieces_to(report, error)(text.data(), text.size());
  });
}

}  // namespace npu::aten
