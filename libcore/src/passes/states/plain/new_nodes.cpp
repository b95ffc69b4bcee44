// SPDX-License-Identifier: Apache-2.0
// Nodes and tensors in the JSON of a template. O(rank) for each.
#include "passes/states/plain/new_nodes.hpp"

#include <utility>

#include "support/json_fields.hpp"

namespace npu::states {

Json NewTensors::mention(const Json& like, const std::string& wanted, const SizeShape& shape) {
  std::string name = wanted;
  while (model_.shape(name) != nullptr || !names_.insert(name).second) name += "_";
  Json mention = like;
  set_member(mention, "name", name);
  set_member(mention, "shape", shape_json(shape));
  for (const char* key : {"producer_node", "producer_output_idx"}) mention.erase(key);
  return mention;
}

Json given_by(const std::string& node, Json mention) {
  set_member(mention, "producer_node", node);
  set_member(mention, "producer_output_idx", 0);
  return mention;
}

Json new_node(const std::string& name, const std::string& op_type, Json inputs, Json result,
              Json attrs) {
  return {{"name", name},
          {"op_type", op_type},
          {"inputs", std::move(inputs)},
          {"outputs", Json::array({std::move(result)})},
          {"attrs", std::move(attrs)}};
}

}  // namespace npu::states
