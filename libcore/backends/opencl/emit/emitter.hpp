// SPDX-License-Identifier: Apache-2.0
// Writes the text of one kernel: an op asks for elements of its operands at an index, which are
// loaded, computed in place from ops of the same group, or found behind views.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "emit/index.hpp"
#include "emit/model.hpp"
#include "emit/scalars.hpp"

namespace npu::opencl {

/// A group of ops that no one kernel computes; its nodes are then kernels of their own.
struct CannotFuse {
  std::string reason;
};

/// What a kernel reads or writes.
struct KernelArgument {
  /// Invalid: scratch memory, or without any the word that says that an index is out of range.
  TensorId tensor;
  bool is_written = false;
  std::int32_t output = -1;  ///< in place of the tensor's memory that of a graph output
  DType scratch_dtype = DType::kFloat32;
  std::int64_t scratch_bytes = 0;
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
  /// The place that an index states in a dimension, with negative ones counted from its end. One
  /// outside is a fault of the run, and moved to the nearest place within.
  std::string place_within(const Node& node, const std::string& stated, std::int64_t extent);
  /// An array that the items of a work group share, aligned to 16 bytes. Throws CannotFuse if the
  /// device has no room.
  void local_array(const std::string& type, const std::string& name,
                   std::initializer_list<std::int64_t> extents);
  /// The name of a bound that the kernel is passed, so that kernels whose operands differ in their
  /// number of rows alone have the same text.
  std::string size(std::int64_t value);
  /// The name of a pointer to device memory that the kernel alone uses, for `count` values.
  std::string scratch(DType dtype, std::int64_t count);
  /// The name of a pointer to a tensor's memory.
  std::string pointer(TensorId tensor, bool is_written, std::int32_t output = -1);

  // ---- Refusals ----
  /// Throws Error kUnsupported with the node's name.
  [[noreturn]] void refuse(const Node& node, const std::string& text) const;
  void expect_shape(const Node& node, int result, const Shape& shape) const;
  /// Refuses an operand that does not broadcast to a shape.
  void expect_broadcast(const Node& node, TensorId operand, const Shape& to) const;
  void expect_dtype(const Node& node, int result, DType dtype) const;

  /// The whole kernel; KERNEL stands for its name.
  std::string text(const std::string& attributes) const;
  const std::vector<KernelArgument>& arguments() const noexcept { return arguments_; }
  const std::vector<std::uint64_t>& sizes() const noexcept { return sizes_; }
  /// The names of nodes with indices that are compared with their dimensions.
  const std::set<std::string>& indexing() const noexcept { return indexing_; }
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
  std::vector<std::uint64_t> sizes_;
  std::set<NodeId> checked_;
  std::set<std::string> indexing_;
  std::int64_t local_bytes_ = 0;
  int next_name_ = 0;
};

}  // namespace npu::opencl
