// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export/onnx_graph.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/ids.hpp"
#include "ops/schema.hpp"

namespace npu::onnx_export {

/// What all nodes of one export share.
struct ExportState {
  const Graph& graph;
  const std::vector<Tensor>& constants;  ///< by TensorId; empty for what is no constant
  OnnxGraph onnx;
  IdVector<TensorId, std::string> names;  ///< what a tensor is called in the file; empty: not yet
  IdVector<NodeId, char> done;            ///< a node that an earlier one has taken in
};

/// One node of the document while it is written. Rules throw Error kUnsupported, with the reason,
/// by refuse().
class NodeExport {
 public:
  NodeExport(ExportState& state, NodeId id, const BoundNode& bound)
      : args(bound), graph(state.graph), onnx(state.onnx), state_(state), id_(id) {}

  const BoundNode& args;  // NOLINT: rules read it
  const Graph& graph;     // NOLINT
  OnnxGraph& onnx;        // NOLINT

  [[noreturn]] static void refuse(const std::string& reason);

  NodeId id() const noexcept { return id_; }
  const Node& node() const { return graph.node(id_); }
  const TensorInfo& result() const { return graph.tensor(node().outputs.front()); }
  const TensorInfo& info(std::string_view argument) const { return graph.tensor(id_of(argument)); }
  /// The tensor of an argument, which must be one.
  TensorId id_of(std::string_view argument) const;
  /// The first tensor of the node, whatever its argument is called.
  TensorId first() const;
  const TensorInfo& first_info() const { return graph.tensor(first()); }

  /// The values of a constant; null for other tensors.
  const Tensor* known(TensorId id) const;
  /// What a tensor is called in the file.
  std::string value(TensorId id);
  std::string value(std::string_view argument) { return value(id_of(argument)); }
  /// Empty for None.
  std::string optional_value(std::string_view argument);
  /// A tensor or a number, as elements of `dtype`.
  std::string value_as(std::string_view argument, DType dtype);
  std::string value_as(TensorId id, DType dtype);
  std::string scalar(double number, DType dtype);
  /// float32 or another type of floats, all of one value.
  std::string filled(std::int64_t count, double number, DType dtype);

  /// Adds a node with one result, which gets a name of its own.
  std::string emit(const std::string& op, std::vector<std::string> inputs,
                   OnnxAttributes attributes = {});
  /// The same for a node with several results.
  std::vector<std::string> emit_several(const std::string& op, std::vector<std::string> inputs,
                                        OnnxAttributes attributes, std::size_t count);
  std::string emit_cast(const std::string& input, DType dtype);
  std::string emit_reshape(const std::string& input, const Shape& shape);
  /// Adds the node that makes the document's result.
  void finish(const std::string& op, std::vector<std::string> inputs,
              OnnxAttributes attributes = {});
  /// The same for the result of another node of the document, which is taken in.
  void finish_for(NodeId node, const std::string& op, std::vector<std::string> inputs,
                  OnnxAttributes attributes = {});
  /// All results of a list.
  void finish_list(const std::string& op, std::vector<std::string> inputs,
                   OnnxAttributes attributes);
  /// One result of several is a value that exists.
  void finish_output(std::size_t index, const std::string& name);
  /// The result is a value that exists, or that one in the result's shape.
  void finish_as(const std::string& name);
  void finish_reshaped(const std::string& input);

  /// `axis` from the front, of a tensor with this many dimensions.
  static std::int64_t axis_of(std::int64_t axis, std::size_t rank);

 private:
  ExportState& state_;
  NodeId id_;
};

using ExportRule = void (*)(NodeExport&);

/// The rule of an op; null if there is none.
ExportRule find_export_rule(std::string_view op_type);

}  // namespace npu::onnx_export
