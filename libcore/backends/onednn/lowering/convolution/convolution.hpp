// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lowering/convolution/choose_convolution.hpp"
#include "lowering/product/integer_product.hpp"
#include "lowering/product/product.hpp"

namespace npu::onednn {

struct ConvolutionCall {
  DType type = DType::kFloat32;
  Value source{};
  Value weight{};  ///< plain, [O, I / groups, ..]
  std::optional<Value> bias;
  std::int64_t groups = 1;
  Spatial spatial;
  Shape output;
};

/// True if npu-align keeps the node row-major.
inline bool is_pinned(const Node& node) {
  const Json* mode = find_member(node.json, "align_mode");
  return mode != nullptr && *mode == "NALIGN";
}

/// What a convolution's node says besides its operands' values.
ConvolutionCall read_convolution_geometry(Lowering& lowering, const BoundNode& node);
/// What a convolution's node and the group's batch norms say, its source being what the
/// kernel reads.
Lowered<ConvolutionCall> read_convolution(Lowering& lowering, const GroupContext& context,
                                          const BoundNode& node);

/// Leaves out taps that read nothing but padding, so that no other kernel has to. The weight stays
/// plain.
void trim_taps(Lowering& lowering, ConvolutionCall& call);

/// Adds the fastest kernel for a call with the group's epilogue.
Lowered<Value> add_convolution(Lowering& lowering, const GroupContext& context,
                               const ConvolutionCall& call);
/// Adds the first of the candidates, a Winograd kernel, or says what of the group's
/// epilogue it does not do.
Lowered<Value> add_winograd(Lowering& lowering, const GroupContext& context,
                            const ConvolutionCall& call, const std::vector<Candidate>& candidates);
/// The same for a PackedGemm or a Gemv.
Lowered<Value> add_pointwise(Lowering& lowering, const GroupContext& context,
                             const ConvolutionCall& call, const std::vector<Candidate>& candidates);
/// Whether a convolution walks over a signal of one channel, and how it is then computed.
bool suits_windows(const Lowering& lowering, const GroupContext& context,
                   const ConvolutionCall& call);
Lowered<Value> add_windows(Lowering& lowering, const GroupContext& context,
                           const ConvolutionCall& call);
/// A pointwise convolution with a norm in front.
Lowered<Value> add_norm_pointwise(Lowering& lowering, const GroupContext& context,
                                  const ConvolutionCall& call, const Norm& norm);
/// A pointwise convolution with interpolations in front.
Lowered<Value> add_resized_pointwise(Lowering& lowering, const GroupContext& context,
                                     const ConvolutionCall& call, const Resized& resized);
/// A depthwise convolution with a pointwise one in front.
Lowered<Value> add_expand_depthwise(Lowering& lowering, const GroupContext& context,
                                    const ConvolutionCall& call, const Expansion& expansion);
/// A node with its arguments checked.
struct TransposedCall {
  TensorId input;
  TensorId weight;
  std::optional<TensorId> bias;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> pad_end;  ///< what is cut off behind; below 0: added
  std::vector<std::int64_t> dilation;
  std::int64_t groups = 1;
  std::int64_t channels = 0;  ///< of the result
  Shape output;
};

bool is_transposed_convolution(const BoundNode& node);
TransposedCall read_transposed_call(Lowering& lowering, const BoundNode& node);
/// The kernel with more taps where oneDNN's deconvolution needs them, for which `call` cuts more.
Value with_room(Lowering& lowering, TransposedCall& call, const Value& kernel);
/// [I, O / groups, ..] seen as [groups, O / groups, I / groups, ..].
Value turned_weight(Lowering& lowering, const Value& weight, std::int64_t groups);

/// Sets the result of a convolution of integers.
Lowered<Done> define_integer_convolution(Lowering& lowering, const GroupContext& context,
                                         const BoundNode& node, const IntegerFactor& left,
                                         IntegerFactor right);
/// A convolution of int32.
Lowered<Done> lower_integer_convolution(Lowering& lowering, const GroupContext& context,
                                        const BoundNode& node);

/// Lowers the convolution of a group's part with the work of the part in front of it.
Lowered<Done> lower_with_front(Lowering& lowering, const KernelGroup& part, Front front);

Lowered<Done> lower_convolution(Lowering& lowering, const GroupContext& context,
                                const BoundNode& node);
Lowered<Done> lower_transposed_convolution(Lowering& lowering, const GroupContext& context,
                                           const BoundNode& node);
/// A pointwise convolution and the depthwise one behind it.
Lowered<Done> lower_expand_depthwise_group(Lowering& lowering, const GroupContext& context);
/// A batch norm and the convolution of one by one behind it.
Lowered<Done> lower_norm_pointwise_group(Lowering& lowering, const GroupContext& context);
/// Interpolations, a concatenation and a pointwise convolution.
Lowered<Done> lower_resized_pointwise_group(Lowering& lowering, const GroupContext& context);
/// Mean, layer, activation, layer, gate and product.
Lowered<Done> lower_squeeze_excite_group(Lowering& lowering, const GroupContext& context);

}  // namespace npu::onednn
