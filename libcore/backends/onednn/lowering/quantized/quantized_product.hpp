// SPDX-License-Identifier: Apache-2.0
#pragma once

// What int8 convolutions and products have in common: weights, what is done with their sums, and
// where results go.

#include <optional>
#include <string_view>
#include <vector>

#include "lowering/product/product.hpp"
#include "lowering/quantized/quantized_op.hpp"

namespace npu::onednn {

/// Weights of int8, symmetric around zero.
struct QuantizedWeight {
  Value value;                ///< plain, as the dequantized tensor is stated
  std::vector<float> scales;  ///< one for all, or one for each element of `axis`
  std::int64_t axis = 0;
  std::int64_t zero_point = 0;  ///< of all
};

Lowered<QuantizedWeight> quantized_weight(Lowering& lowering, TensorId tensor);

/// What a batch norm does with each channel: factor * x + shift.
struct NormTerms {
  std::vector<double> factors;
  std::vector<double> shifts;
};

/// What a primitive does with its sums.
struct Finish {
  std::vector<PostOpRecord> operations;
  std::vector<float> scales;          ///< of the sums: one, or one for each channel
  std::vector<float> bias_factors;    ///< of the bias, likewise
  std::optional<Dequantization> sum;  ///< what the result is stored over
};

Lowered<Finish> finish_of(const Lowering& lowering, const QuantizedOp& op, float source_scale,
                          const std::vector<float>& weight_scales);
dnnl::primitive_attr attributes_of(const Finish& finish, int channel_mask,
                                   const QuantizedSource& source, const QuantizedOp& op);
/// Where a primitive stores its result: over what it adds, if nothing reads that later.
Value quantized_result(Lowering& lowering, const QuantizedOp& op, const Finish& finish,
                       const Layout& layout, const Value& source);

/// What a batch norm and the bias become.
struct ChannelTerms {
  std::vector<float> scales;  ///< of the weights, with the norm's factors
  std::optional<NormTerms> norm;
};
/// `scales` with the factors of the norm behind the op, if there is one.
Lowered<ChannelTerms> channel_terms(const Lowering& lowering, const QuantizedOp& op,
                                    std::vector<float> scales, std::int64_t channels);
/// The bias with the norm in it, in units of the sums; nothing if there is neither.
Lowered<std::optional<Value>> channel_bias(Lowering& lowering, const std::optional<TensorId>& bias,
                                           const ChannelTerms& terms, const Finish& finish,
                                           std::int64_t channels);

/// The same numbers as int8.
QuantizedSource signed_source(Lowering& lowering, const QuantizedSource& source);
/// left [B, M, K] times int8 numbers right [B, K, N], both plain, as floats times `scale`.
Lowered<Value> add_integer_product(Lowering& lowering, const QuantizedSource& left,
                                   const QuantizedSource& right, float scale);

/// True for a kernel that is slower than float32 would be.
inline bool is_slow(const dnnl::primitive_desc& primitive) {
  return is_reference(primitive) ||
         std::string_view(primitive.impl_info_str()).starts_with("gemm:ref");
}

inline const NotFused kNoFastKernel{"oneDNN has no fast int8 kernel for it on this CPU"};
inline const NotFused kNoExactInt8{
    "this CPU has no VNNI, without which only uint8 times weights of 7 bits is exact"};

/// The first that is fast of what `describe` says with channels last, and as oneDNN likes.
template <typename Describe>
auto fast_primitive(const Describe& describe) -> Lowered<decltype(describe(true))> {
  for (const bool channels_last : {true, false}) {
    try {
      auto primitive = describe(channels_last);
      if (!is_slow(primitive)) return primitive;
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
  }
  return kNoFastKernel;
}

}  // namespace npu::onednn
