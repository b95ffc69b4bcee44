// SPDX-License-Identifier: Apache-2.0
// Finds the tokens, positions, mask and logits of a decoder. O(inputs + readers + outputs).
#include "passes/states/decoder_inputs.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "ops/op_name.hpp"
#include "support/text.hpp"

namespace npu::states {
namespace {

/// [rows] or [1, rows].
bool is_row(const SizeShape& shape, const SizeExpression& rows) {
  return !shape.empty() && shape.size() <= 2 && shape.back() == rows &&
         (shape.size() == 1 || shape.front() == SizeExpression(1));
}

/// Whether rows of a table are read by its elements.
bool is_index(const Graph& graph, TensorId id) {
  const TensorInfo& tensor = graph.tensor(id);
  return std::any_of(tensor.consumers.begin(), tensor.consumers.end(), [&](NodeId reader) {
    const Node& node = graph.node(reader);
    const std::string_view name = functional_name(node.op_type);
    const bool reads_rows = name == "embedding" || name == "index" || name == "index_select";
    return reads_rows && node.inputs.size() > 1 && node.inputs[0] != id &&
           graph.tensor(node.inputs[0]).kind == TensorKind::kWeight;
  });
}

bool is_called(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
}

}  // namespace

std::optional<DecoderInputs> find_decoder_inputs(const PastModel& model, Diagnostics& diagnostics) {
  const Graph& graph = model.graph();
  const CachePairs& caches = model.caches();
  DecoderInputs found;
  for (const TensorId id : graph.graph_inputs()) {
    const TensorInfo& tensor = graph.tensor(id);
    const bool is_cache = std::any_of(caches.pairs.begin(), caches.pairs.end(),
                                      [&](const auto& p) { return p.input == tensor.name; });
    if (is_cache) continue;
    if (model.mentions_past(id)) {
      if (!is_row(model.shape(id), caches.total) || !is_called(tensor.name, "mask") ||
          found.mask.valid()) {
        std::string shape;
        for (const SizeExpression& size : model.shape(id)) {
          shape += (shape.empty() ? "" : ", ") + size.text();
        }
        diagnostics.error({.file = model.model().file()},
                          "input '" + short_text(tensor.name) + "' [" + shape +
                              "] has a size that follows from the past; expected only caches and "
                              "a mask [1, " +
                              caches.total.text() + "]");
        return std::nullopt;
      }
      found.mask = id;
      continue;
    }
    if (tensor.dtype != DType::kInt64 || !is_row(model.shape(id), caches.fresh)) continue;
    if (is_called(tensor.name, "pos")) {
      if (!found.positions.valid()) found.positions = id;
    } else if (!found.tokens.valid() && is_index(graph, id)) {
      found.tokens = id;
    }
  }
  for (const TensorId id : graph.graph_outputs()) {
    const SizeShape& shape = model.shape(id);
    const bool is_cache = std::any_of(caches.pairs.begin(), caches.pairs.end(), [&](const auto& p) {
      return p.output == graph.tensor(id).name;
    });
    if (is_cache || shape.size() != 3 || !is_floating_point(graph.tensor(id).dtype)) continue;
    if (!found.logits.valid()) found.logits = id;
  }
  return found;
}

}  // namespace npu::states
