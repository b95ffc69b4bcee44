// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/engine/journal.hpp"
#include "lowering/engine/machine.hpp"
#include "lowering/engine/node_text.hpp"
#include "npu/ir/graph.hpp"
#include "program/plan.hpp"

namespace npu::onednn {

/// Dimensions of a tensor, at most.
inline constexpr std::size_t kMaxRank = 8;

/// True for what oneDNN's primitives compute.
inline bool has_primitive_type(DType type) {
  return type == DType::kFloat32 || type == DType::kBFloat16;
}

/// True for oneDNN's plain loops, which stand in where no fast kernel fits.
inline bool is_reference(const dnnl::primitive_desc& primitive) {
  return std::string_view(primitive.impl_info_str()).starts_with("ref");
}

/// Numbers as oneDNN takes them.
inline dnnl::memory::dims dims(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

/// One operand of a primitive.
struct PrimitiveOperand {
  int argument;  ///< DNNL_ARG_*
  Value value;
};

/// A plan under construction: buffers, steps, copies in other layouts and types, and places within
/// other buffers. Steps count for the node that is being lowered.
class PlanBuilder {
 public:
  PlanBuilder(const Machine& machine, const dnnl::engine& engine)
      : machine_(&machine), engine_(&engine) {}

  const Machine& machine() const noexcept { return *machine_; }
  const dnnl::engine& engine() const noexcept { return *engine_; }
  /// Channels in blocks as the machine's vectors have elements.
  Layout blocked(const Shape& shape, DType type) const {
    return blocked_layout(shape, type, machine_->lanes());
  }

  /// The node that is being lowered.
  const Node& node() const noexcept { return *node_; }
  /// Refuses it. `argument` may be empty.
  [[noreturn]] void refuse(std::string_view argument, const std::string& reason) const;
  /// The sub-IR contradicts itself at this node.
  [[noreturn]] void invalid(const std::string& reason) const;

  /// The same tensor in row-major order; no copy if it is already.
  Value plain(const Value& value);
  /// The same tensor with no gaps in memory; views with gaps become row-major.
  Value dense(const Value& value);
  /// The same tensor with strides and without blocks.
  Value strided(const Value& value);
  Value in_layout(const Value& value, const Layout& layout);
  Value in_type(const Value& value, DType type);
  /// A row-major value seen with another shape of as many elements.
  Value reshaped(const Value& value, const Shape& shape);
  /// The same, but a dimension in blocks stays so where it is a dimension of `shape`, too.
  Value viewed(const Value& value, const Shape& shape);

  /// True if the content is known when the program is loaded.
  bool is_constant(const Value& value) const;
  Value temporary(DType type, const Layout& layout);
  Value constant(float number);
  /// Row-major elements of `type` that are known now.
  Value constant(DType type, const Shape& shape, std::vector<std::byte> bytes);
  std::size_t buffer_bytes(BufferId buffer) const { return plan_.buffers[index_of(buffer)].bytes; }

  /// Attributes for a primitive that takes its scratchpad from the arena.
  static dnnl::primitive_attr attributes();
  /// Adds a primitive; its scratchpad operand is added here. `choice` says why it was taken.
  void add_primitive(const dnnl::primitive_desc_base& primitive,
                     std::initializer_list<PrimitiveOperand> reads, const Value& write);
  void add_primitive(const dnnl::primitive_desc_base& primitive,
                     std::span<const PrimitiveOperand> reads, const Value& write,
                     KernelChoice choice = {});
  /// Adds one of our kernels for this machine's instruction set: it gets the addresses of what it
  /// reads, of what it writes and, if it asks for any, of scratch memory.
  void add_kernel(std::span<const Value> reads, const Value& write, Kernel kernel,
                  KernelKind kind = KernelKind::kCompute, KernelChoice choice = {});
  void add_kernel(std::initializer_list<Value> reads, const Value& write, Kernel kernel,
                  KernelKind kind = KernelKind::kCompute);
  /// To be called when a step overwrites a value, which has no copies any more, and is none.
  void note_overwritten(const Value& value);
  /// Copies a value into memory that exists already, in another layout.
  void copy_into(const Value& from, const Value& to, KernelKind kind);

  bool can_place(BufferId buffer) const;
  /// True if the whole buffer of a value may become a part of another buffer.
  bool can_place(const Value& value) const;
  /// Makes it one, `offset_bytes` behind the beginning of `whole`.
  void place(BufferId part, BufferId whole, std::int64_t offset_bytes);
  struct Concat {
    std::vector<Value> operands;
    Value whole;
  };
  /// Remembers what a concatenation was made of.
  void note_concat(std::vector<Value> operands, const Value& whole);
  /// The longest earlier concatenation, still free to be placed, of the values from `first` on;
  /// null if there is none.
  const Concat* find_concat(const std::vector<Value>& values, std::size_t first) const;

 protected:
  /// For a change that a transaction takes back.
  BufferInfo& changed_buffer(BufferId buffer);
  BufferId add_buffer(BufferInfo info);
  /// True if nothing but the value lies in its buffer, which is one of the arena.
  bool fills_buffer(const Value& value) const;

  const Machine* machine_;
  Plan plan_;
  Journal journal_;  ///< of what changes in a transaction, here and in derived classes
  const Node* node_ = nullptr;
  std::int32_t node_index_ = -1;   ///< that steps count for
  std::int32_t group_index_ = -1;  ///< in Plan::groups
  bool binds_outputs_ = false;

 private:
  struct Copy {
    Value from;
    Value to;
  };
  void generate(Step& step) const;
  void add_step(Step step);
  Value copied(const Value& value, DType type, const Layout& layout);
  const Value* find_copy(const Value& value, DType type, const Layout& layout) const;

  const dnnl::engine* engine_;
  std::vector<Concat> concats_;
  std::map<std::int32_t, std::vector<Copy>> copies_;  ///< by source buffer: reorders made so far
};

}  // namespace npu::onednn
