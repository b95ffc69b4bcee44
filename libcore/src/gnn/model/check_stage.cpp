// SPDX-License-Identifier: Apache-2.0
// Checks the types in the document of a stage once, where it is read, so that code that cuts blocks
// out of it can use members without checking them again. O(size of the document).
#include "gnn/model/check_stage.hpp"

#include <string_view>

#include "support/json_fields.hpp"

namespace npu::gnn {
namespace {

constexpr FieldStyle kStyle{
    .code = ErrorCode::kInvalidGraph, .names_key = true, .takes_empty_text = false};

void check_tensor(const JsonFields& tensor) {
  tensor.text("name");
  for (const std::string_view key : {"shape", "dtype", "producer_node", "producer_output_idx"}) {
    const Json* member = tensor.find(key);
    if (member == nullptr || member->is_null()) continue;
    if (key == "shape") tensor.list(key);
    if (key == "dtype" || key == "producer_node") tensor.text(key);
  }
}

void check_tensors(const JsonFields& object, std::string_view key, bool required) {
  if (!required && !object.has(key)) return;
  object.for_each(key, check_tensor);
}

void check_node(const JsonFields& node) {
  check_tensors(node, "inputs", true);
  check_tensors(node, "outputs", true);
}

}  // namespace

void check_stage_document(const Json& ir, const std::string& file, const std::string& pointer) {
  const JsonFields document(ir, file, pointer, kStyle);
  check_tensors(document, "graph_inputs", true);
  check_tensors(document, "graph_outputs", true);
  check_tensors(document, "weights", false);
  document.for_each("nodes", check_node);
  for (const std::string_view key : {"weight_name_mapping", "constants"}) {
    if (document.has(key)) document.object(key);
  }
}

}  // namespace npu::gnn
