// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

/// The quantization behind the op of a group.
struct QuantizedTarget {
  const Node* node = nullptr;
  NodeId id{};
  DType type = DType::kUInt8;  ///< uint8 or int8
  float scale = 1.0F;
  std::int64_t zero_point = 0;
  std::int64_t least = 0;
  std::int64_t most = 255;

  /// Bounded by the type alone.
  bool is_whole() const noexcept { return IntegerRange{least, most} == range_of(type); }
};

/// One thing that is done to the op's result in between.
struct QuantizedStep {
  std::optional<Eltwise> function{};
  std::optional<Dequantization> addend{};  ///< else: a tensor of the result's shape is added
  NodeId node{};                           ///< that it is a part of
};

/// An op on dequantized tensors, as far as its kernels have to know.
struct QuantizedOp {
  const Node* node = nullptr;  ///< the op itself
  const Node* norm = nullptr;  ///< a batch norm of its result, before all steps
  std::vector<QuantizedStep> steps;
  std::optional<QuantizedTarget> target;  ///< none: the result stays a tensor of floats
  TensorId result;                        ///< of the group
};

/// The source's numbers, with one scale and zero point.
struct QuantizedSource {
  Value value;
  float scale = 1.0F;
  std::int64_t zero_point = 0;
};
Lowered<QuantizedSource> quantized_source(Lowering& lowering, TensorId tensor);

/// Whether oneDNN's kernels give the exact sums of products of a source of this type with a weight
/// that is dequantized: without VNNI they add two products in 16 bits, which 255 * 64 fits twice,
/// and divide a weight by two if the source is signed.
bool has_exact_products(const Lowering& lowering, DType source, TensorId weight);

/// The scales of operand and result are too far apart for float32.
inline const NotFused kFarScales{"the scales of operand and result are too far apart"};

/// The target's range, but cut where what stands behind the op are bounds; nothing for other
/// functions.
Lowered<IntegerRange> bounds_of(const QuantizedOp& op);

/// Numbers of one scale with functions behind them as numbers of the target's.
Lowered<Value> converted(Lowering& lowering, const QuantizedOp& op, const QuantizedSource& source,
                         const std::vector<QuantizedStep>& steps);

/// Resampling and padding.
Lowered<Value> add_quantized_resample(Lowering& lowering, const QuantizedOp& op);
Lowered<Value> add_quantized_pad(Lowering& lowering, const QuantizedOp& op);

/// Convolutions and matrix products as one primitive.
Lowered<Value> add_quantized_convolution(Lowering& lowering, const QuantizedOp& op);
Lowered<Value> add_quantized_transposed(Lowering& lowering, const QuantizedOp& op);
Lowered<Value> add_quantized_product(Lowering& lowering, const QuantizedOp& op);

/// A scaled dot product attention as two products of integers.
Lowered<Value> add_quantized_attention(Lowering& lowering, const QuantizedOp& op);

/// In memory without gaps and without padding, which a function of zero would fill.
Value without_gaps(Lowering& lowering, const Value& value);

/// An argument of a conversion: a number, or a constant of one element.
double conversion_number(const Lowering& lowering, const BoundNode& node, std::string_view name);
/// The same as an integer.
std::int64_t conversion_integer(const Lowering& lowering, const BoundNode& node,
                                std::string_view name);

/// The quantize kernel of a node for floats that need not be its operand.
Value add_quantize(Lowering& lowering, const BoundNode& node, const Value& floats);

}  // namespace npu::onednn
