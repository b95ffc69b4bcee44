// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/kernel.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::onednn {

/// Alignment of every buffer: a cache line, and the widest vector.
inline constexpr std::size_t kAlignment = 64;

enum class BufferKind : std::uint8_t {
  kInput,     ///< memory of the host's input buffer, read only
  kOutput,    ///< memory of an output buffer
  kWeight,    ///< the host's weight, read only and in place
  kConstant,  ///< computed once by the prologue
  kArena,     ///< lives from its first writer to its last reader
};

/// A tensor of the sub-IR that the host passes.
struct TensorBinding {
  std::string name{};
  DType dtype = DType::kFloat32;
  Shape shape{};
  std::string layout{};  ///< of an input or output: its name; empty: row-major
};

struct BufferRecord {
  BufferKind kind = BufferKind::kArena;  ///< a weight counts as a constant
  std::uint64_t bytes = 0;
  std::uint64_t index = 0;   ///< kInput, kOutput, kConstant: position among them
  std::uint64_t offset = 0;  ///< kArena: in the arena
};

struct OperandRecord {
  std::uint32_t buffer = 0;
  std::uint64_t offset_bytes = 0;
};

/// Where the elements of a tensor lie. Dimensions are padded to whole blocks.
struct LayoutRecord {
  DType type = DType::kFloat32;       ///< float32, bfloat16, int8 or uint8
  std::vector<std::int64_t> extents;  ///< without padding
  std::vector<std::int64_t> strides;  ///< of whole blocks, in elements
  std::vector<std::int64_t> inner_blocks;
  std::vector<std::int64_t> inner_dimensions;  ///< that each inner block is a part of
  /// Weights of int8: sums behind them that make up for the source's sign and zero point.
  std::int64_t sums = 0;             ///< dnnl_memory_extra_flags_t
  std::int64_t sign_mask = 0;        ///< dimensions that the first kind of sums has
  std::int64_t zero_point_mask = 0;  ///< and the second
  std::int64_t sum_bytes = 0;        ///< of all of them
};

/// The kinds of sums that a layout may have.
inline constexpr std::int64_t kSignSums = 1;
inline constexpr std::int64_t kSignScale = 2;  ///< no sums: the weights are multiplied by 1
inline constexpr std::int64_t kZeroPointSums = 8;

enum class PrimitiveKind : std::uint8_t {
  kConvolution,
  kDeconvolution,
  kPooling,
  kDilatedPooling,
  kMatmul,
  kLayerNorm,
  kConcat,
  kReorder,
  kEltwise,
  kBinary,
};

/// What a primitive does to its result before it stores it.
struct PostOpRecord {
  enum class Kind : std::uint8_t { kEltwise, kSum, kBinary };
  Kind kind = Kind::kEltwise;
  std::int64_t algorithm = 0;  ///< dnnl_alg_kind_t; 0 for a sum
  float alpha = 0.0F;          ///< of a sum: its scale
  float beta = 0.0F;
  std::int64_t zero_point = 0;   ///< kSum
  DType type = DType::kFloat32;  ///< kSum: of what is added; float32: the result's own type
};

/// A primitive of oneDNN, as the numbers that its descriptor is made of. Numbers that a kind has no
/// use for are 0 and lists are empty.
struct PrimitiveRecord {
  PrimitiveKind kind = PrimitiveKind::kReorder;
  std::int64_t algorithm = 0;  ///< dnnl_alg_kind_t
  float alpha = 0.0F;          ///< kEltwise, kLayerNorm: epsilon
  float beta = 0.0F;           ///< kEltwise
  std::int64_t axis = 0;       ///< kConcat
  bool has_bias = false;       ///< kConvolution, kDeconvolution, kMatmul
  bool has_scale = false;      ///< kLayerNorm
  bool has_shift = false;      ///< kLayerNorm
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilation;  ///< 0 for none
  std::vector<std::int64_t> pad_begin;
  std::vector<std::int64_t> pad_end;
  float output_scale = 1.0F;
  float right_scale = 1.0F;           ///< kBinary: of the second operand
  std::vector<float> channel_scales;  ///< kConvolution, kMatmul: instead of output_scale
  std::int64_t source_zero_point = 0;
  std::int64_t weights_zero_point = 0;
  std::int64_t target_zero_point = 0;
  std::vector<PostOpRecord> post_ops;
  std::vector<LayoutRecord> layouts;  ///< of each operand
};

/// One primitive or one kernel; the other is empty.
struct StepRecord {
  std::int32_t node = -1;               ///< that the time counts for; -1 for none
  std::vector<OperandRecord> operands;  ///< those that it reads, then the one that it writes
  std::uint64_t scratch_bytes = 0;      ///< of scratch memory; another number of threads may need
                                        ///< more or less
  std::uint64_t scratch_offset = 0;     ///< in the arena
  std::optional<Kernel> kernel;
  std::optional<PrimitiveRecord> primitive;
};

/// A result of a node that a run can give besides the outputs.
struct TapRecord {
  TensorBinding tensor;          ///< as the sub-IR states it
  DType type = DType::kFloat32;  ///< of the elements in memory
  LayoutRecord layout;           ///< its type is that of the descriptor alone
  OperandRecord source;
  std::uint64_t steps = 0;  ///< that are done when it is there; later ones may overwrite it
};

/// An output that may be the buffer of an input, whose content no step needs once it is begun.
struct AliasRecord {
  std::uint64_t input = 0;   ///< its place among the inputs
  std::uint64_t output = 0;  ///< among the outputs
  bool is_in_place = false;  ///< what the steps do not write stays where it is; else it is copied
};

/// A plan as a blob keeps it: what load needs to run it, as plain numbers.
struct PlanRecord {
  std::uint64_t node_count = 0;
  std::uint64_t arena_bytes = 0;
  std::vector<TensorBinding> inputs;
  std::vector<TensorBinding> outputs;
  std::vector<BufferRecord> buffers;
  std::vector<StepRecord> steps;
  std::vector<TapRecord> taps;  ///< by `steps`
  std::vector<AliasRecord> aliases;
};

template <>
inline constexpr int kEnumerators<BufferKind> = 5;
template <>
inline constexpr int kEnumerators<PrimitiveKind> = 12;
template <>
inline constexpr int kEnumerators<PostOpRecord::Kind> = 3;

NPU_FIELDS(TensorBinding, name, dtype, shape, layout);
NPU_FIELDS(BufferRecord, kind, bytes, index, offset);
NPU_FIELDS(OperandRecord, buffer, offset_bytes);
NPU_FIELDS(LayoutRecord, type, extents, strides, inner_blocks, inner_dimensions, sums, sign_mask,
           zero_point_mask, sum_bytes);
NPU_FIELDS(PostOpRecord, kind, algorithm, alpha, beta, zero_point, type);
NPU_FIELDS(PrimitiveRecord, kind, algorithm, alpha, beta, axis, has_bias, has_scale, has_shift,
           kernel, strides, dilation, pad_begin, pad_end, output_scale, right_scale, channel_scales,
           source_zero_point, weights_zero_point, target_zero_point, post_ops, layouts);
NPU_FIELDS(StepRecord, node, operands, scratch_bytes, scratch_offset, kernel, primitive);
NPU_FIELDS(TapRecord, tensor, type, layout, source, steps);
NPU_FIELDS(AliasRecord, input, output, is_in_place);
NPU_FIELDS(PlanRecord, node_count, arena_bytes, inputs, outputs, buffers, steps, taps, aliases);

}  // namespace npu::onednn
