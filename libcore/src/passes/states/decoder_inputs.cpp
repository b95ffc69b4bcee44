// SPDX-License-Identifier: Apache-2.0
// Finds the tokens, positions, mask and logits of a decoder. O(inputs + nodes + outputs).
#include "passes/states/decoder_inputs.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op_name.hpp"
#include "passes/states/follow_past.hpp"
#include "support/text.hpp"

namespace npu::states {
namespace {

/// [rows] or [1, rows].
bool is_row(const SizeShape& shape, const SizeExpression& rows) {
  return !shape.empty() && shape.size() <= 2 && shape.back() == rows &&
         (shape.size() == 1 || shape.front() == SizeExpression(1));
}

/// Tensors by whose elements rows of a table are read, perhaps in another dtype.
IdVector<TensorId, char> indices_of(const Graph& graph) {
  IdVector<TensorId, char> indices;
  indices.resize(graph.tensors().size());
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.node(id_at<NodeId>(i));
    const std::string_view name = functional_name(node.op_type);
    if (node.inputs.empty()) continue;
    if (is_cast(name) && indices[node.outputs[0]] != 0) indices[node.inputs[0]] = 1;
    if (!reads_rows(name) || graph.tensor(node.inputs[0]).kind != TensorKind::kWeight) continue;
    for (const TensorId input : node.inputs) {
      if (input != node.inputs[0]) indices[input] = 1;
    }
  }
  return indices;
}

/// Whether the new rows of all buffers go behind those of the past.
bool are_behind_past(const PastModel& model, const DecoderInputs& inputs) {
  PastFollower follower(model, inputs);
  const CachePairs& caches = model.caches();
  Formula wanted = integer_formula(1, caches.past);
  if (caches.fresh != SizeExpression(1)) wanted.integer->factors[0] = 1;
  // Every formula of a tensor in front is looked for first, so that none is far behind.
  for (const NodeId id : ids_of<NodeId>(model.graph().nodes())) {
    for (const TensorId output : model.graph().node(id).outputs) follower.formula(output);
  }
  return std::all_of(caches.pairs.begin(), caches.pairs.end(), [&](const CachePair& pair) {
    const std::optional<Formula>& places = follower.formula(model.graph().find_tensor(pair.index));
    return places && places->integer == wanted.integer;
  });
}

/// The input that says how many rows buffers of fixed size have, if one is needed. False if what
/// is written into them is not shown to stand behind these.
bool find_start(const PastModel& model, DecoderInputs& inputs) {
  if (are_behind_past(model, inputs)) return true;
  for (const TensorId id : model.graph().graph_inputs()) {
    const TensorInfo& tensor = model.graph().tensor(id);
    const SizeShape& shape = model.shape(id);
    const bool is_single = std::all_of(shape.begin(), shape.end(), [](const SizeExpression& size) {
      return size == SizeExpression(1);
    });
    const bool is_whole = tensor.dtype == DType::kInt64 || tensor.dtype == DType::kInt32;
    if (!is_single || !is_whole || id == inputs.tokens || id == inputs.positions) continue;
    inputs.start = id;
    if (are_behind_past(model, inputs)) return true;
  }
  return false;
}

}  // namespace

bool is_cast(std::string_view op) { return op == "to" || op == "_to_copy"; }

bool reads_rows(std::string_view op) {
  return op == "embedding" || op == "index" || op == "index_select";
}

bool is_called(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
}

std::optional<DecoderInputs> find_decoder_inputs(const PastModel& model, const DecoderNames& names,
                                                 Diagnostics& diagnostics) {
  const auto is_named = [](const std::string& stated, const std::string& name, bool otherwise) {
    return stated.empty() ? otherwise : stated == name;
  };
  const Graph& graph = model.graph();
  const CachePairs& caches = model.caches();
  DecoderInputs found;
  const IdVector<TensorId, char> indices = indices_of(graph);
  for (const TensorId id : graph.graph_inputs()) {
    const TensorInfo& tensor = graph.tensor(id);
    const bool is_cache = std::any_of(caches.pairs.begin(), caches.pairs.end(),
                                      [&](const auto& p) { return p.input == tensor.name; });
    if (is_cache) continue;
    if (model.mentions_past(id)) {
      if (!is_row(model.shape(id), caches.used()) ||
          !is_named(names.mask, tensor.name, is_called(tensor.name, "mask")) ||
          found.mask.valid()) {
        std::string shape;
        for (const SizeExpression& size : model.shape(id)) {
          shape += (shape.empty() ? "" : ", ") + size.text();
        }
        diagnostics.error({.file = model.model().file()},
                          "input '" + short_text(tensor.name) + "' [" + shape +
                              "] has a size that follows from the past; expected only caches and "
                              "a mask [1, " +
                              caches.used().text() + "]");
        return std::nullopt;
      }
      found.mask = id;
      continue;
    }
    if (tensor.dtype != DType::kInt64 || !is_row(model.shape(id), caches.fresh)) continue;
    if (is_named(names.positions, tensor.name, is_called(tensor.name, "pos"))) {
      if (!found.positions.valid()) found.positions = id;
    } else if (!found.tokens.valid() && is_named(names.tokens, tensor.name, indices[id] != 0)) {
      found.tokens = id;
    }
  }
  for (const TensorId id : graph.graph_outputs()) {
    const SizeShape& shape = model.shape(id);
    const bool is_cache = std::any_of(caches.pairs.begin(), caches.pairs.end(), [&](const auto& p) {
      return p.output == graph.tensor(id).name;
    });
    if (is_cache || shape.size() != 3 || !is_floating_point(graph.tensor(id).dtype)) continue;
    if (!found.logits.valid() && is_named(names.logits, graph.tensor(id).name, true)) {
      found.logits = id;
    }
  }
  if (caches.is_fixed && !find_start(model, found)) {
    diagnostics.error({.file = model.model().file()},
                      "new rows of '" + short_text(caches.pairs.front().output) +
                          "' are written at places that are not shown to be behind those that "
                          "there are");
    return std::nullopt;
  }
  return found;
}

}  // namespace npu::states
