// SPDX-License-Identifier: Apache-2.0
// Finds the tokens, positions, mask and logits of a decoder. O(inputs + readers + outputs). Tokens
// and positions of 32 bits, as ONNX Runtime's own exporters have them, get 64 first. O(inputs x
// nodes).
#include "passes/states/decoder_inputs.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "ops/op_name.hpp"
#include "passes/states/follow_past.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::states {
namespace {

/// [rows] or [1, rows].
bool is_row(const SizeShape& shape, const SizeExpression& rows) {
  return !shape.empty() && shape.size() <= 2 && shape.back() == rows &&
         (shape.size() == 1 || shape.front() == SizeExpression(1));
}

/// Whether rows of a table are read by its elements, perhaps in another dtype.
bool is_index(const Graph& graph, TensorId id) {
  const TensorInfo& tensor = graph.tensor(id);
  return std::any_of(tensor.consumers.begin(), tensor.consumers.end(), [&](NodeId reader) {
    const Node& node = graph.node(reader);
    const std::string_view name = functional_name(node.op_type);
    if (name == "to" || name == "_to_copy") return is_index(graph, node.outputs[0]);
    const bool reads_rows = name == "embedding" || name == "index" || name == "index_select";
    return reads_rows && node.inputs.size() > 1 && node.inputs[0] != id &&
           graph.tensor(node.inputs[0]).kind == TensorKind::kWeight;
  });
}

bool is_called(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
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

/// The same in a document.
bool is_index(const Json& document, const std::string& tensor) {
  for (const Json& node : *member_list(document, "nodes")) {
    const std::string_view name = functional_name(*member_text(node, "op_type"));
    const std::vector<std::string> inputs = names_in(node, "inputs");
    const auto found = std::find(inputs.begin(), inputs.end(), tensor);
    if (found == inputs.end()) continue;
    const bool is_cast = name == "to" || name == "_to_copy";
    if (is_cast && is_index(document, names_in(node, "outputs").front())) return true;
    const bool reads_rows = name == "embedding" || name == "index" || name == "index_select";
    if (reads_rows && found != inputs.begin()) return true;
  }
  return false;
}

}  // namespace

std::optional<Json> widened_inputs(const Template& model, const DecoderNames& names) {
  Json document = model.document();
  Json casts = Json::array();
  for (Json& input : *find_member(document, "graph_inputs")) {
    const std::string name = *member_text(input, "name");
    const std::size_t rank = model.shape(name)->size();
    const bool is_role = name == names.tokens || name == names.positions ||
                         is_called(name, "pos") || is_index(document, name);
    if (*member_text(input, "dtype") != "int32" || rank < 1 || rank > 2 || !is_role) continue;
    Json narrow = input;
    std::string narrow_name = name + ".int32";
    while (model.shape(narrow_name) != nullptr) narrow_name += "_";
    set_member(narrow, "name", narrow_name);
    set_member(input, "dtype", "int64");
    casts.push_back({{"name", narrow_name},
                     {"op_type", "aten.to.dtype"},
                     {"inputs", Json::array({input})},
                     {"outputs", Json::array({narrow})},
                     {"attrs", {{"dtype", "torch.int32"}}}});
    set_member(narrow, "producer_node", narrow_name);
    set_member(narrow, "producer_output_idx", 0);
    for (Json& node : *find_member(document, "nodes")) {
      for (Json& operand : *find_member(node, "inputs")) {
        if (*member_text(operand, "name") == name) operand = narrow;
      }
    }
  }
  if (casts.empty()) return std::nullopt;
  Json& nodes = *find_member(document, "nodes");
  for (Json& node : nodes) casts.push_back(std::move(node));
  nodes = std::move(casts);
  return document;
}

std::optional<DecoderInputs> find_decoder_inputs(const PastModel& model, const DecoderNames& names,
                                                 Diagnostics& diagnostics) {
  const auto is_named = [](const std::string& stated, const std::string& name, bool otherwise) {
    return stated.empty() ? otherwise : stated == name;
  };
  const Graph& graph = model.graph();
  const CachePairs& caches = model.caches();
  DecoderInputs found;
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
    } else if (!found.tokens.valid() && is_named(names.tokens, tensor.name, is_index(graph, id))) {
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
