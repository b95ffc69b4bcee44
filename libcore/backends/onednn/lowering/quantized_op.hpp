// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lowering/lowering.hpp"

namespace npu::onednn {

/// The quantization behind the op of a group.
struct QuantizedTarget {
  const Node* node = nullptr;
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

/// Convolutions and matrix products as one primitive.
Lowered<Value> add_quantized_convolution(Lowering& lowering, const QuantizedOp& op);
Lowered<Value> add_quantized_product(Lowering& lowering, const QuantizedOp& op);

/// In memory without gaps and without padding, which a function of zero would fill.
Value without_gaps(Lowering& lowering, const Value& value);

/// The quantize kernel of a node for floats that need not be its operand.
Value add_quantize(Lowering& lowering, const BoundNode& node, const Value& floats);

}  // namespace npu::onednn
