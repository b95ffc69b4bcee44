// SPDX-License-Identifier: Apache-2.0
// Looks up nodes of a template, which is no graph yet, by the names of their results. O(nodes)
// once.
#include "passes/states/producers.hpp"

#include "ops/op_name.hpp"
#include "support/json_fields.hpp"

namespace npu::states {

bool is_copy(std::string_view name) {
  return name == "clone" || name == "alias" || name == "contiguous" || name == "detach";
}

bool is_view(std::string_view name) {
  return name == "reshape" || name == "view" || name == "_unsafe_view" || name == "squeeze" ||
         name == "unsqueeze";
}

Producers::Producers(const Json& document) {
  const Json* nodes = member_list(document, "nodes");
  for (std::size_t n = 0; nodes != nullptr && n < nodes->size(); ++n) {
    const Json* outputs = member_list((*nodes)[n], "outputs");
    for (std::size_t i = 0; outputs != nullptr && i < outputs->size(); ++i) {
      if (const std::string* name = member_text((*outputs)[i], "name")) {
        by_tensor_.try_emplace(*name, &(*nodes)[n]);
      }
    }
  }
}

const Json* Producers::find(const std::string& tensor) const {
  const auto found = by_tensor_.find(tensor);
  return found == by_tensor_.end() ? nullptr : found->second;
}

const Json* Producers::find_behind_copies(std::string tensor) const {
  constexpr int kDeepest = 8;
  for (int depth = 0; depth < kDeepest; ++depth) {
    const Json* node = find(tensor);
    if (node == nullptr) return nullptr;
    if (!is_copy(functional_name(*member_text(*node, "op_type")))) return node;
    const Json* inputs = member_list(*node, "inputs");
    if (inputs == nullptr || inputs->empty()) return nullptr;
    tensor = *member_text((*inputs)[0], "name");
  }
  return nullptr;
}

}  // namespace npu::states
