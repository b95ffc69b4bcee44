// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/device/blob.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::conformance {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
};

using WeightSpec = NamedTensor;

struct NodeSpec {
  std::string name;
  std::string op;
  std::vector<std::string> operands;
  TensorSpec result;  ///< its name is the node's
  Json attrs = Json::object();
};

/// A small graph, in the order of a sub-IR.
struct GraphSpec {
  std::vector<TensorSpec> inputs;
  std::vector<WeightSpec> weights;
  std::vector<NodeSpec> nodes;
  std::vector<std::string> outputs;

  /// Of an input, a weight or a result.
  TensorSpec tensor(const std::string& name) const;
};

/// The document that the host writes for it.
Json sub_ir_json(const GraphSpec& graph);
std::string sub_ir_text(const GraphSpec& graph);

/// A graph of one node: `operands` are its inputs.
GraphSpec one_node(const std::string& op, const std::vector<TensorSpec>& operands,
                   const TensorSpec& result, Json attrs = Json::object());

/// All of them in one graph, with names that begin with their numbers.
GraphSpec side_by_side(const std::vector<GraphSpec>& graphs);

/// Small graphs of common ops, of which most backends compile one.
std::vector<GraphSpec> sample_graphs(DType dtype);

/// Values that every dtype has and that suit most functions: small, some negative, some 0.
Tensor test_values(const TensorSpec& tensor, std::uint64_t seed);
/// Sets element `index`, rounded to the dtype.
void set_element(Tensor& tensor, std::int64_t index, double value);

}  // namespace npu::conformance
