// SPDX-License-Identifier: Apache-2.0
// Takes a form for a list of mentions, and makes the list again. O(length of the list).
#include "ir/mention_form.hpp"

namespace npu {

Json tensor_mention(std::string_view name, const Shape& shape, DType dtype) {
  return {{"name", name}, {"shape", shape}, {"dtype", dtype_name(dtype)}};
}

std::optional<MentionForm> mention_form(const Json& json) noexcept {
  if (!json.is_number_unsigned()) return std::nullopt;
  return static_cast<MentionForm>(json.get<std::uint8_t>());
}

bool names_producer(const TensorInfo& tensor, MentionForm form) noexcept {
  switch (form) {
    case MentionForm::kBare:
      return false;
    case MentionForm::kResults:
      return is_computed(tensor);
    case MentionForm::kAllButWeights:
      break;
  }
  return tensor.kind != TensorKind::kWeight || tensor.is_folded();
}

Json mention_json(const Graph& graph, TensorId id, MentionForm form) {
  const TensorInfo& tensor = graph.tensor(id);
  Json json = tensor_mention(tensor.name, tensor.shape, tensor.dtype);
  if (names_producer(tensor, form)) {
    json["producer_node"] = is_computed(tensor) ? graph.producer_name(tensor) : tensor.name;
    json["producer_output_idx"] = tensor.result;
  }
  return json;
}

void expand_mentions(const Graph& graph, Node& node) {
  for (auto& [key, value] : node.json.get_ref<Json::object_t&>()) {
    if (key == "name") {
      if (value.is_null()) value = node.name;
    } else if (key == "op_type") {
      if (value.is_null()) value = node.op_type;
    } else if (key == "inputs" || key == "outputs") {
      const auto form = mention_form(value);
      if (!form) continue;
      value = Json::array();
      for (const TensorId id : key == "inputs" ? node.inputs : node.outputs) {
        value.push_back(mention_json(graph, id, *form));
      }
    }
  }
}

}  // namespace npu
