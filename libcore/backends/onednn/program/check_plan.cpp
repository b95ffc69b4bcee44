// SPDX-License-Identifier: Apache-2.0
// Whether a plan that came from a file can run: buffers are what inputs, outputs and constants say,
// every operand lies in its buffer, is aligned, of a kind that may be read or written, written
// before it is read, and apart from what the same step writes; what is alive at the same time lies
// apart in the arena; an input that an output may take the place of is not read behind its first
// step. What a kernel touches is its footprint's to say, what a primitive touches
// the layouts'. O(steps + buffers * log(buffers)).
#include "program/check_plan.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "kernels/base/refuse.hpp"
#include "kernels/kernel.hpp"
#include "program/boundary_layout.hpp"
#include "program/memory_plan.hpp"
#include "program/tap.hpp"
#include "support/checked.hpp"

namespace npu::onednn {

namespace {

constexpr std::uint64_t kMaxNodes = 1U << 24;
constexpr std::uint64_t kMaxBytes = static_cast<std::uint64_t>(kMaxOperandBytes);
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 31;
constexpr std::size_t kMaxLayoutRank = 12;

/// Extents in whole blocks; also the elements of one block.
std::int64_t count_blocks(const LayoutRecord& layout, std::vector<std::int64_t>& counts) {
  constexpr std::int64_t kMaxBlock = 1 << 16;
  std::vector<std::int64_t> block_of(layout.extents.size(), 1);
  std::int64_t block = 1;
  for (std::size_t i = 0; i < layout.inner_blocks.size(); ++i) {
    const std::int64_t dimension = layout.inner_dimensions[i];
    const std::int64_t size = layout.inner_blocks[i];
    require(dimension >= 0 && dimension < static_cast<std::int64_t>(layout.extents.size()),
            "a block is of a dimension that the layout does not have");
    require(size >= 1 && size <= kMaxBlock && block * size <= kMaxBlock, "a block is too large");
    block_of[static_cast<std::size_t>(dimension)] *= size;
    block *= size;
  }
  for (std::size_t i = 0; i < layout.extents.size(); ++i) {
    require(layout.extents[i] >= 1 && layout.extents[i] < kMaxExtent,
            "an extent is not in 1..2^31");
    counts.push_back((layout.extents[i] + block_of[i] - 1) / block_of[i]);
  }
  return block;
}

/// The sums behind the weights of an int8 convolution or product. How many bytes they take is
/// oneDNN's to say, which compares when it makes the layout.
std::size_t sum_bytes(const LayoutRecord& layout) {
  constexpr std::int64_t kKnown = kSignSums | kSignScale | kZeroPointSums;
  const auto masks = std::int64_t{1} << layout.extents.size();
  require(layout.sums == 0 || layout.type == DType::kInt8, "a layout has sums that it cannot have");
  require(layout.sums >= 0 && (layout.sums & ~kKnown) == 0, "a layout has sums that there are not");
  require(layout.sign_mask >= 0 && layout.sign_mask < masks && layout.zero_point_mask >= 0 &&
              layout.zero_point_mask < masks,
          "a mask of sums is none");
  require(layout.sum_bytes >= 0 && layout.sum_bytes <= kMaxOperandBytes / 8 &&
              (layout.sums != 0 || layout.sum_bytes == 0),
          "the sums of a layout have no size");
  return static_cast<std::size_t>(layout.sum_bytes);
}

std::size_t tensor_bytes(const TensorBinding& tensor) {
  const auto count = checked_element_count(tensor.shape);
  const auto bytes =
      count ? checked_multiply(*count, static_cast<std::int64_t>(dtype_size(tensor.dtype)))
            : std::nullopt;
  require(bytes && *bytes <= kMaxOperandBytes, "a tensor's shape is none");
  return static_cast<std::size_t>(*bytes);
}

/// What a primitive touches: all that its layouts span. The result of an element-wise one may lie
/// in the memory of its first operand.
Footprint footprint_of(const PrimitiveRecord& primitive, std::size_t scratch_bytes) {
  require(!primitive.layouts.empty(), "a primitive without layouts");
  Footprint result;
  for (const LayoutRecord& layout : primitive.layouts) {
    result.reads.push_back({checked_span(layout), dtype_size(layout.type), false});
  }
  result.write = result.reads.back();
  result.reads.pop_back();
  const bool is_elementwise =
      primitive.kind == PrimitiveKind::kEltwise || primitive.kind == PrimitiveKind::kBinary;
  if (is_elementwise && !result.reads.empty()) {
    result.reads.front().may_be_target = result.reads.front().bytes == result.write.bytes;
  }
  result.scratch_bytes = scratch_bytes;
  return result;
}

class Checker {
 public:
  Checker(PlanRecord& plan, std::span<const std::size_t> constant_bytes)
      : plan_(plan), constant_bytes_(constant_bytes), first_write_(plan.buffers.size(), SIZE_MAX) {}

  void check_buffers() {
    require(plan_.node_count <= kMaxNodes, "it has too many nodes");
    require(plan_.arena_bytes <= kMaxBytes, "its arena is too large");
    std::vector<bool> bound[3];
    const std::vector<TensorBinding>* const bindings[2]{&plan_.inputs, &plan_.outputs};
    for (int i = 0; i < 2; ++i) bound[i].assign(bindings[i]->size(), false);
    bound[2].assign(constant_bytes_.size(), false);
    for (const TensorBinding& input : plan_.inputs) tensor_bytes(input);
    for (const auto* tensors : bindings) {
      for (const TensorBinding& each : *tensors) {
        require(each.layout.empty() || find_boundary_layout(each.layout, each.shape, each.dtype),
                "a tensor has a layout that there is not");
      }
    }
    for (const BufferRecord& buffer : plan_.buffers) {
      require(buffer.bytes >= 1 && buffer.bytes <= kMaxBytes, "a buffer is empty or too large");
      if (buffer.kind == BufferKind::kArena) continue;
      require(buffer.kind != BufferKind::kWeight, "a buffer is a weight of the host");
      const int kind = buffer.kind == BufferKind::kInput    ? 0
                       : buffer.kind == BufferKind::kOutput ? 1
                                                            : 2;
      require(buffer.index < bound[kind].size(), "a buffer is bound to a tensor that is not there");
      require(!bound[kind][buffer.index], "two buffers are bound to one tensor");
      bound[kind][buffer.index] = true;
      const std::size_t bytes =
          kind == 2 ? constant_bytes_[buffer.index] : tensor_bytes((*bindings[kind])[buffer.index]);
      require(buffer.bytes == bytes,
              "a buffer has another size than the tensor that it is bound to");
    }
    require(std::find(bound[1].begin(), bound[1].end(), false) == bound[1].end(),
            "an output has no buffer");
  }

  /// Pairs of an input and an output of one type; each is in one of them at most.
  void check_aliases() {
    state_target_.assign(plan_.buffers.size(), kNone);
    std::vector<bool> inputs(plan_.inputs.size(), false);
    std::vector<bool> outputs(plan_.outputs.size(), false);
    for (const AliasRecord& alias : plan_.aliases) {
      require(alias.input < inputs.size() && alias.output < outputs.size() &&
                  !inputs[alias.input] && !outputs[alias.output],
              "an alias is no pair of an input and an output");
      inputs[alias.input] = outputs[alias.output] = true;
      const TensorBinding& input = plan_.inputs[alias.input];
      const TensorBinding& output = plan_.outputs[alias.output];
      require(input.dtype == output.dtype && input.shape == output.shape &&
                  input.layout == output.layout,
              "an alias is a pair of tensors that differ");
      const std::size_t from = find_bound(BufferKind::kInput, alias.input);
      if (from != kNone) state_target_[from] = find_bound(BufferKind::kOutput, alias.output);
    }
  }

  void check_step(StepRecord& step, std::size_t primitive_scratch) {
    const auto number = static_cast<std::size_t>(&step - plan_.steps.data());
    require(step.node >= -1 && step.node < static_cast<std::int64_t>(plan_.node_count),
            "its node is not there");
    require(step.kernel.has_value() != step.primitive.has_value(),
            "it is not either a kernel or a primitive");
    const Footprint footprint = step.kernel ? npu::onednn::footprint_of(*step.kernel)
                                            : footprint_of(*step.primitive, primitive_scratch);
    require(step.operands.size() == footprint.reads.size() + 1,
            "it has another number of operands");
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      const bool is_target = i == footprint.reads.size();
      try {
        check_operand(step.operands[i], is_target ? footprint.write : footprint.reads[i]);
        if (!is_target) check_read(step.operands[i], footprint.reads[i], step, footprint.write);
      } catch (const Error& error) {
        refuse("operand " + std::to_string(i) + ": " + error.message());
      }
    }
    const std::uint32_t target = step.operands.back().buffer;
    const BufferKind kind = plan_.buffers[target].kind;
    require(kind == BufferKind::kArena || kind == BufferKind::kOutput,
            "it writes what may only be read");
    first_write_[target] = std::min(first_write_[target], number);
    require(step.scratch_bytes <= kMaxBytes && footprint.scratch_bytes <= kMaxBytes,
            "its scratch memory is too large");
    if (footprint.scratch_bytes > step.scratch_bytes) {
      step.scratch_bytes = footprint.scratch_bytes;
      grew_ = true;
    }
    if (footprint.scratch_bytes == 0) step.scratch_bytes = 0;
  }

  /// What it reads lies in its buffer, and a step that is done by then has written it.
  void check_tap(const TapRecord& tap) const {
    require(tap.steps <= plan_.steps.size(), "it waits for steps that are not there");
    require(tap.tensor.layout.empty(), "it is not row-major");
    tensor_bytes(tap.tensor);
    const Access access{tap_span(tap), dtype_size(tap.type), false};
    check_operand(tap.source, access);
    const BufferKind kind = plan_.buffers[tap.source.buffer].kind;
    const bool is_given = kind == BufferKind::kInput || kind == BufferKind::kConstant;
    require(is_given || first_write_[tap.source.buffer] < tap.steps, "no step has written it");
    const std::size_t target = state_target_[tap.source.buffer];
    require(target == kNone || tap.steps <= first_write_[target],
            "a step may have overwritten it, since an output may lie there");
  }

  void check_taps() const {
    for (std::size_t i = 0; i < plan_.taps.size(); ++i) {
      require(i == 0 || plan_.taps[i - 1].steps <= plan_.taps[i].steps,
              "its taps are not in the order of their steps");
      try {
        check_tap(plan_.taps[i]);
      } catch (const Error& error) {
        refuse("tap " + std::to_string(i) + ": " + error.message());
      }
    }
  }

  void check_memory() {
    for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
      require(plan_.buffers[i].kind != BufferKind::kOutput || is_written(i),
              "no step writes an output");
    }
    if (grew_) {
      place_in_arena(plan_);
      require(plan_.arena_bytes <= kMaxBytes, "its arena is too large");
    } else {
      require(arena_fits(plan_), "buffers overlap, or lie outside the arena");
    }
  }

 private:
  void check_operand(const OperandRecord& operand, const Access& access) const {
    require(operand.buffer < plan_.buffers.size(), "its buffer is not there");
    const BufferRecord& buffer = plan_.buffers[operand.buffer];
    require(operand.offset_bytes % access.alignment == 0, "it is misaligned");
    if (operand.offset_bytes > buffer.bytes || access.bytes > buffer.bytes - operand.offset_bytes) {
      refuse(std::to_string(access.bytes) + " bytes from " + std::to_string(operand.offset_bytes) +
             " on do not lie in a buffer of " + std::to_string(buffer.bytes));
    }
  }

  void check_read(const OperandRecord& operand, const Access& access, const StepRecord& step,
                  const Access& write) const {
    const BufferKind kind = plan_.buffers[operand.buffer].kind;
    require(
        (kind != BufferKind::kArena && kind != BufferKind::kOutput) || is_written(operand.buffer),
        "no step has written it");
    const OperandRecord& target = step.operands.back();
    const std::size_t aliased = state_target_[operand.buffer];
    require(aliased == kNone || !is_written(aliased),
            "a step may have overwritten it, since an output may lie there");
    if (operand.buffer != target.buffer && aliased != target.buffer) return;
    const bool apart = operand.offset_bytes >= target.offset_bytes + write.bytes ||
                       target.offset_bytes >= operand.offset_bytes + access.bytes;
    const bool in_place = access.may_be_target && operand.offset_bytes == target.offset_bytes;
    require(apart || in_place, "it overlaps what the step writes");
  }

  std::size_t find_bound(BufferKind kind, std::size_t index) const {
    const auto found = std::ranges::find_if(plan_.buffers, [&](const BufferRecord& buffer) {
      return buffer.kind == kind && buffer.index == index;
    });
    return found == plan_.buffers.end() ? kNone
                                        : static_cast<std::size_t>(found - plan_.buffers.begin());
  }

  bool is_written(std::size_t buffer) const { return first_write_[buffer] != SIZE_MAX; }

  PlanRecord& plan_;
  std::span<const std::size_t> constant_bytes_;
  static constexpr std::size_t kNone = SIZE_MAX;
  std::vector<std::size_t> first_write_;  ///< by buffer: the step, in whole or in part
  /// By buffer: of an input, that of the output that may lie there; kNone.
  std::vector<std::size_t> state_target_;
  bool grew_ = false;
};

std::string name_of(const StepRecord& step) {
  return step.kernel ? std::string(kernel_name(*step.kernel)) : "primitive";
}

}  // namespace

std::size_t checked_span(const LayoutRecord& layout) {
  const std::size_t rank = layout.extents.size();
  require(is_byte(layout.type) || layout.type == DType::kFloat32 || layout.type == DType::kBFloat16,
          "a layout is not of float32 or bfloat16, int8 or uint8");
  require(rank >= 1 && rank <= kMaxLayoutRank && layout.strides.size() == rank,
          "a layout's strides are not of the rank of its extents");
  require(layout.inner_blocks.size() <= kMaxLayoutRank &&
              layout.inner_blocks.size() == layout.inner_dimensions.size(),
          "a layout's blocks have no dimensions");
  std::vector<std::int64_t> counts;
  const std::int64_t block = count_blocks(layout, counts);
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return layout.strides[a] < layout.strides[b];
  });
  std::int64_t span = block;  // elements that the dimensions seen so far take up
  for (const std::size_t i : order) {
    const std::int64_t stride = layout.strides[i];
    require(stride >= 0 && stride <= kMaxOperandBytes, "a stride is negative or too large");
    if (counts[i] == 1) continue;
    require(stride >= span, "two elements of a layout lie in one place");
    const auto distance = checked_multiply(stride, counts[i] - 1);
    require(distance && *distance <= kMaxOperandBytes, "a layout is too large");
    span += *distance;
  }
  require(span <= kMaxOperandBytes / 8, "a layout is too large");
  const std::size_t bytes = static_cast<std::size_t>(span) * dtype_size(layout.type);
  return bytes + sum_bytes(layout);
}

void check_plan(PlanRecord& plan, std::span<const std::size_t> scratch_bytes,
                std::span<const std::size_t> constant_bytes) {
  try {
    Checker checker(plan, constant_bytes);
    checker.check_buffers();
    checker.check_aliases();
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      try {
        checker.check_step(plan.steps[i], scratch_bytes[i]);
      } catch (const Error& error) {
        refuse("step " + std::to_string(i) + " (" + name_of(plan.steps[i]) +
               "): " + error.message());
      }
    }
    checker.check_taps();
    checker.check_memory();
  } catch (const Error& error) {
    refuse("the blob's plan is damaged: " + error.message());
  }
}

}  // namespace npu::onednn
