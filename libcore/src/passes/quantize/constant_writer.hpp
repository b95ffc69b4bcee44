// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ir/graph_editor.hpp"
#include "npu/ir/graph.hpp"

namespace npu::quantize {

/// A tensor of the document as nodes mention it.
struct Mention {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
  TensorSource source = {};  ///< an empty node: a weight or constant

  Json json() const;
};

/// Adds constants to a document, and nodes through an editor.
class ConstantWriter {
 public:
  ConstantWriter(Graph& graph, GraphEditor& editor) : graph_(graph), editor_(editor) {}

  Mention mention(TensorId id) const;
  Mention add_constant(const std::string& wanted, const Shape& shape, DType dtype, Json data);
  /// Inserts a node before `place`; returns its result, which has the node's name.
  Mention add_node(NodeId place, const std::string& wanted, const std::string& op_type,
                   const std::vector<Mention>& inputs, const Mention& like,
                   const Json& attrs = Json::object());
  /// tensor * factors, which are one for each element of `axis`.
  Mention multiplied(NodeId place, const Mention& tensor, const std::vector<float>& factors,
                     std::int32_t axis);
  /// The weight of a convolution in groups times the factors of the channels that it reads.
  Mention multiplied_in_groups(NodeId place, const Mention& weight,
                               const std::vector<float>& factors);

 private:
  Graph& graph_;
  GraphEditor& editor_;
};

}  // namespace npu::quantize
