// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "npu/ir/graph.hpp"
#include "program/kernel_choice.hpp"
#include "program/layout.hpp"
#include "program/plan_record.hpp"

namespace npu::onednn {

/// Index into Plan::buffers.
struct BufferId {
  std::int32_t value = -1;
  auto operator<=>(const BufferId&) const = default;
};

struct BufferInfo {
  BufferKind kind = BufferKind::kArena;
  std::size_t bytes = 0;
  std::size_t index = 0;           ///< kInput, kOutput: position; kWeight: index into Plan::weights
  std::vector<std::byte> initial;  ///< kConstant: its content, if no step writes it
  BufferId parent;                 ///< kArena: the buffer that this one is a part of, if any
  std::size_t parent_offset = 0;   ///< in bytes
  bool has_parts = false;          ///< it is the parent of another
  std::size_t arena_offset = 0;    ///< kArena: of a plan that was restored from a blob
};

/// A place in a buffer.
struct Operand {
  BufferId buffer;
  std::int64_t offset_bytes = 0;
};

/// A tensor in memory.
struct Value {
  DType type = DType::kFloat32;  ///< of the elements in memory, which is float32 for a bfloat16
                                 ///< tensor where the CPU has no bfloat16 arithmetic
  Layout layout;
  BufferId buffer;
  std::int64_t offset = 0;  ///< first element

  Operand operand() const noexcept {
    return {buffer, offset * static_cast<std::int64_t>(dtype_size(type))};
  }
};

/// What a kernel does, for the report.
enum class KernelKind : std::uint8_t {
  kCompute,
  kReorder,  ///< changes layout or dtype only
  kMove,     ///< moves elements as an op asks for it
};

/// One primitive or one kernel.
struct Step {
  KernelKind kind = KernelKind::kCompute;
  std::int32_t node = -1;     ///< the node that the time counts for; -1 for none
  std::int32_t group = -1;    ///< index into Plan::groups of the nodes that it computes, if several
  bool binds_output = false;  ///< only brings a result into the layout that the host reads
  std::vector<Operand> operands;  ///< those it reads, then those it writes
  std::size_t read_count = 0;
  std::optional<Kernel> kernel;         ///< set for one of our kernels
  dnnl::primitive_desc_base primitive;  ///< set for a primitive,
  std::vector<int> arguments;           ///< with DNNL_ARG_* and
  std::vector<Layout> layouts;          ///< the layout of each operand
  int threads = 0;                      ///< always so many; 0: those of the run
  KernelChoice choice;                  ///< what speaks for it, where there were others
};

/// The content of a constant buffer.
struct PackedConstant {
  std::span<const std::byte> bytes;
};

/// A kernel that the fusion groups of the sub-IR did not predict.
struct PlanSplit {
  std::string pattern;  ///< of its group
  NodeId node;          ///< that its time counts for
  std::string reason;
};

/// Called between the pieces of a compile, with how many there are. It may throw, which stops it.
using Checkpoint = std::function<void(std::size_t done, std::size_t total)>;

/// A sub-IR lowered to steps: everything but memory and generated code.
struct Plan {
  std::vector<BufferInfo> buffers;
  std::vector<Step> prologue;  ///< run once by load: what depends on weights alone
  std::vector<Step> steps;
  std::vector<TensorBinding> inputs;
  std::vector<TensorBinding> outputs;
  std::vector<TensorBinding> weights;  ///< those that a step reads
  std::vector<BufferId> constants;     ///< weights and constants that steps (not the prologue) read
  std::size_t node_count = 0;
  std::size_t arena_bytes = 0;              ///< of a plan that was restored from a blob
  std::vector<std::vector<NodeId>> groups;  ///< nodes that were lowered together
  std::vector<PlanSplit> splits;
  bool computes_in_bfloat16 = false;  ///< where the sub-IR has float32
  std::vector<TapRecord> taps;        ///< results that a run can give, too, by `steps`
  std::vector<AliasRecord> aliases;   ///< outputs that may be the buffer of an input
  /// By output: what the layout is called that it is computed in; empty if it has no name.
  std::vector<std::string_view> native_layouts;
};

}  // namespace npu::onednn
