// SPDX-License-Identifier: Apache-2.0
// Gives tokens and positions of 32 bits, as ONNX Runtime's own exporters have them, 64.
// O(nodes) for each of them.
#include "passes/states/plain/widen_inputs.hpp"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/op_name.hpp"
#include "passes/states/cache_pairs.hpp"
#include "passes/states/plain/new_nodes.hpp"
#include "support/json_fields.hpp"

namespace npu::states {
namespace {

/// Tensors by whose elements rows of a table, whatever it is, are read, perhaps in another dtype.
std::set<std::string> indices_of(const Json& document) {
  std::set<std::string> indices;
  const Json& nodes = *member_list(document, "nodes");
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const std::string_view name = functional_name(*member_text(*node, "op_type"));
    const std::vector<std::string> inputs = names_in(*node, "inputs");
    if (inputs.empty()) continue;
    if (is_cast(name) && indices.contains(names_in(*node, "outputs").front())) {
      indices.insert(inputs.front());
    }
    if (reads_rows(name)) indices.insert(inputs.begin() + 1, inputs.end());
  }
  return indices;
}

}  // namespace

std::optional<Json> widened_inputs(const Template& model, const DecoderNames& names) {
  Json document = model.document();
  const std::set<std::string> indices = indices_of(document);
  NewTensors tensors(model);
  Json casts = Json::array();
  for (Json& input : *find_member(document, "graph_inputs")) {
    const std::string name = *member_text(input, "name");
    const std::size_t rank = model.shape(name)->size();
    const bool is_role = name == names.tokens || name == names.positions ||
                         is_called(name, "pos") || indices.contains(name);
    if (*member_text(input, "dtype") != "int32" || rank < 1 || rank > 2 || !is_role) continue;
    Json narrow = tensors.mention(input, name + ".int32", *model.shape(name));
    set_member(input, "dtype", "int64");
    const std::string cast = *member_text(narrow, "name");
    casts.push_back(
        new_node(cast, "aten.to.dtype", Json::array({input}), narrow, {{"dtype", "torch.int32"}}));
    narrow = given_by(cast, std::move(narrow));
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

}  // namespace npu::states
