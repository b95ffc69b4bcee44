// SPDX-License-Identifier: Apache-2.0
// float16: no CPU that oneDNN knows computes in it, so what a sub-IR states as float16 is computed
// and kept as float32. Weights and inputs are converted when they are first read, results when they
// leave; aten.to and its like round to float16 (lower_cast.cpp), other ops do not.
//
// float64 between integers of 8 bits: what a model states for exactness is computed on the
// integers, or in float32, a step off at most.
#include "lowering/engine/widened.hpp"

#include <algorithm>
#include <vector>

#include "ir/graph_editor.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/json.hpp"
#include "ops/byte_regions.hpp"

namespace npu::onednn {

namespace {

bool is_one_of(DType dtype, const std::vector<DType>& dtypes) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

void to_float32(Json& json, const std::vector<DType>& from) {
  if (json.is_array()) {
    for (Json& element : json) to_float32(element, from);
  } else if (json.is_object()) {
    for (auto& [key, value] : json.items()) {
      const bool is_dtype = key == "dtype" || key == "out_dtype";
      const auto* text = is_dtype ? value.get_ptr<const std::string*>() : nullptr;
      if (text == nullptr) {
        to_float32(value, from);
      } else if (const auto dtype = parse_dtype(*text); dtype && is_one_of(*dtype, from)) {
        value = text->starts_with("torch.") ? "torch.float32" : "float32";
      }
    }
  }
}

bool has_dtype(const Graph& graph, DType dtype) {
  return std::any_of(graph.tensors().begin(), graph.tensors().end(),
                     [&](const TensorInfo& tensor) { return tensor.dtype == dtype; });
}

/// Whether all tensors of float64 are between integers of 8 bits.
bool has_byte_regions_alone(const Graph& graph) {
  const auto is_double = [&](TensorId id) { return graph.tensor(id).dtype == DType::kFloat64; };
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const Node& node = graph.node(id);
    // Scales of float64 may be constants of any conversion.
    if (std::any_of(node.outputs.begin(), node.outputs.end(), is_double) &&
        byte_region(graph, id).empty()) {
      return false;
    }
  }
  return std::none_of(graph.graph_inputs().begin(), graph.graph_inputs().end(), is_double);
}

}  // namespace

std::optional<Graph> widened(const Graph& graph) {
  std::vector<DType> from;
  if (has_dtype(graph, DType::kFloat16)) from.push_back(DType::kFloat16);
  const auto is_computed_double = [](const TensorInfo& tensor) {
    return tensor.dtype == DType::kFloat64 && tensor.kind != TensorKind::kWeight;
  };
  if (std::any_of(graph.tensors().begin(), graph.tensors().end(), is_computed_double) &&
      has_byte_regions_alone(graph)) {
    from.push_back(DType::kFloat64);
  }
  if (from.empty()) return std::nullopt;
  Graph wide = graph;
  GraphEditor editor(wide);
  for (const TensorId id : ids_of<TensorId>(graph.tensors())) {
    if (is_one_of(graph.tensor(id).dtype, from)) editor.retype(id, DType::kFloat32);
  }
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    if (Json* attrs = find_member(editor.json(id), "attrs")) to_float32(*attrs, from);
  }
  editor.commit();
  return wide;
}

}  // namespace npu::onednn
