// SPDX-License-Identifier: Apache-2.0
// float16: no CPU that oneDNN knows computes in it, so what a sub-IR states as float16 is computed
// and kept as float32. Weights and inputs are converted when they are first read, results when they
// leave; aten.to and its like round to float16 (lower_cast.cpp), other ops do not.
#include "lowering/widened.hpp"

#include <algorithm>

#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/json.hpp"

namespace npu::onednn {

namespace {

void widen(Json& json) {
  if (json.is_array()) {
    for (Json& element : json) widen(element);
  } else if (json.is_object()) {
    for (auto& [key, value] : json.items()) {
      const bool is_dtype = key == "dtype" || key == "out_dtype";
      const auto* text = is_dtype ? value.get_ptr<const std::string*>() : nullptr;
      if (text == nullptr) {
        widen(value);
      } else if (parse_dtype(*text) == DType::kFloat16) {
        value = text->starts_with("torch.") ? "torch.float32" : "float32";
      }
    }
  }
}

}  // namespace

std::optional<Graph> widened(const Graph& graph) {
  const bool has_float16 =
      std::any_of(graph.tensors().begin(), graph.tensors().end(),
                  [](const TensorInfo& tensor) { return tensor.dtype == DType::kFloat16; });
  if (!has_float16) return std::nullopt;
  Json document = parse_json(write_graph(graph), graph.file);
  for (auto& [key, value] : document.items()) {
    if (key != "constants" && key != "npu") widen(value);
  }
  return read_valid_graph(write_document(document), graph.file);
}

}  // namespace npu::onednn
