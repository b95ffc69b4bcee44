// SPDX-License-Identifier: Apache-2.0
// Writes the text of one kernel: an op asks for elements of its operands at an index, which are
// loaded, computed in place from ops of the same group, or found behind views.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "index.hpp"
#include "npu/ir/graph.hpp"
#include "npu/ops/schema.hpp"

namespace npu::opencl {

/// What a plan is made for, by the facts of the device.
struct Machine {
  bool has_float64 = false;
  bool is_cpu = false;
  std::int64_t max_group = 256;      ///< work items of a work group
  std::int64_t local_bytes = 32768;  ///< of local memory
};

/// A group of ops that no one kernel computes; its nodes are then kernels of their own.
struct CannotFuse {
  std::string reason;
};

/// The graph with its nodes' arguments bound to their schemas.
class Model {
 public:
  /// Throws Error that names the node whose op is not known or whose arguments do not bind.
  Model(const Graph& graph, Machine machine);

  const Graph& graph() const noexcept { return *graph_; }
  const Machine& machine() const noexcept { return machine_; }
  const Shape& shape(TensorId id) const { return graph_->tensor(id).shape; }
  DType dtype(TensorId id) const { return graph_->tensor(id).dtype; }
  std::int64_t count(TensorId id) const;
  const Node& node(NodeId id) const { return graph_->node(id); }
  /// Not for getitem, which has no schema.
  const BoundNode& bound(NodeId id) const { return *bound_[static_cast<std::size_t>(id.value)]; }
  /// "int", or "long" if a tensor has 2^31 elements or more.
  const std::string& index_type() const noexcept { return index_type_; }

 private:
  const Graph* graph_;
  Machine machine_;
  std::vector<std::optional<BoundNode>> bound_;
  std::string index_type_ = "int";
};

/// The C type of values of a dtype, and the one that they are stored as.
std::string value_type(DType dtype);
std::string storage_type(DType dtype);
/// A number as a constant of value_type(dtype).
std::string literal(double number, DType dtype);
std::string literal(std::int64_t number, DType dtype);
/// An expression of value_type(from) as one of value_type(to).
std::string cast_value(const std::string& value, DType from, DType to);
/// "zero" and limits for reductions.
std::string lowest(DType dtype);
std::string highest(DType dtype);

/// What a kernel reads or writes.
struct KernelArgument {
  TensorId tensor;
  bool is_written = false;
  std::int32_t output = -1;  ///< in place of the tensor's memory that of a graph output
};

class Emitter {
 public:
  /// `inlined`: the nodes whose results are computed here, besides views.
  Emitter(const Model& model, std::set<NodeId> inlined);

  const Model& model() const noexcept { return model_; }
  const Shape& shape(TensorId id) const { return model_.shape(id); }
  DType dtype(TensorId id) const { return model_.dtype(id); }

  // ---- Text ----
  void line(const std::string& text);
  /// "HEAD {"; what is computed inside is forgotten at close().
  void open(const std::string& head);
  void close(const std::string& tail = "}");
  std::string fresh(const std::string& prefix);
  /// A constant with this value; returns its name.
  std::string define(const std::string& type, const std::string& value);
  std::string define(DType dtype, const std::string& value) {
    return define(value_type(dtype), value);
  }
  /// An index as names, so that expressions are not written many times.
  Index define_index(const Index& index);
  const std::string& index_type() const { return model_.index_type(); }

  // ---- Values ----
  /// The element as value_type of its dtype. Throws CannotFuse if it cannot be had here.
  std::string element(TensorId tensor, const Index& index);
  /// The same, converted.
  std::string element_as(TensorId tensor, const Index& index, DType to);
  /// As element(), for an operand that is broadcast.
  std::string broadcast_element(TensorId tensor, const Index& index, DType to);
  using Function = std::function<std::string(const Index&)>;
  /// What element() gives from now on for a tensor.
  void bind(TensorId tensor, Function function);
  /// A value that is known at one index alone.
  void bind_value(TensorId tensor, const Index& index, const std::string& name);
  void store(TensorId tensor, const Index& index, const std::string& value,
             std::int32_t output = -1);
  /// The name of a pointer to a tensor's memory.
  std::string pointer(TensorId tensor, bool is_written, std::int32_t output = -1);

  // ---- Refusals ----
  /// Throws Error kUnsupported with the node's name.
  [[noreturn]] void refuse(const Node& node, const std::string& text) const;
  void expect_shape(const Node& node, int result, const Shape& shape) const;
  void expect_dtype(const Node& node, int result, DType dtype) const;

  /// The whole kernel; KERNEL stands for its name.
  std::string text(const std::string& attributes) const;
  const std::vector<KernelArgument>& arguments() const noexcept { return arguments_; }
  bool is_inlined(NodeId id) const { return inlined_.contains(id); }

 private:
  std::string load(TensorId tensor, const Index& index);
  void check_node(NodeId id);

  const Model& model_;
  std::set<NodeId> inlined_;
  /// How many elements wait for those of their operands.
  class Depth {
   public:
    explicit Depth(int& depth) : depth_(depth) { ++depth_; }
    ~Depth() { --depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    int& depth_;
  };

  int depth_ = 0;
  std::vector<std::string> lines_;
  std::vector<std::map<std::string, std::string>> scopes_{1};  ///< values by tensor and index
  std::unordered_map<std::int32_t, Function> bound_;
  std::vector<KernelArgument> arguments_;
  std::set<NodeId> checked_;
  int next_name_ = 0;
};

}  // namespace npu::opencl
