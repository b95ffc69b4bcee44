// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lowering/choose_kernel.hpp"
#include "lowering/lowering.hpp"

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

/// Weights in the order of a kernel of our own, `count` of them, made when they are compiled.
/// `order` reads the row-major weights.
Value ordered_weights(Lowering& lowering, const Value& weight, std::size_t count, Kernel order);

/// What a convolution's node says besides its operands' values.
ConvolutionCall read_convolution_geometry(Lowering& lowering, const BoundNode& node);
/// What a convolution's node and the current group's batch norms say, its source being what the
/// kernel reads.
Lowered<ConvolutionCall> read_convolution(Lowering& lowering, const BoundNode& node);

/// Leaves out taps that read nothing but padding, so that no other kernel has to. The weight stays
/// plain.
void trim_taps(Lowering& lowering, ConvolutionCall& call);

/// Adds the fastest kernel for a call with the current group's epilogue.
Lowered<Value> add_convolution(Lowering& lowering, const ConvolutionCall& call);
/// Adds the first of the candidates, a Winograd kernel, or says what of the current group's
/// epilogue it does not do.
Lowered<Value> add_winograd(Lowering& lowering, const ConvolutionCall& call,
                            const std::vector<Candidate>& candidates);
/// The same for an ImplicitGemm.
Lowered<Value> add_implicit_gemm(Lowering& lowering, const ConvolutionCall& call,
                                 const std::vector<Candidate>& candidates);
/// The same for a GroupedConvolution.
Lowered<Value> add_grouped_convolution(Lowering& lowering, const ConvolutionCall& call,
                                       const std::vector<Candidate>& candidates);
/// The same for a PackedGemm or a Gemv.
Lowered<Value> add_pointwise(Lowering& lowering, const ConvolutionCall& call,
                             const std::vector<Candidate>& candidates);
/// A product with constant weights [columns, inner], of which shape and steps are set, and the
/// current group's epilogue.
Lowered<Value> add_packed_gemm(Lowering& lowering, const PackedGemm& gemm, const Value& source,
                               const Value& weight, const std::optional<Value>& bias,
                               const Layout& layout, KernelChoice choice);
/// Whether a convolution walks over a signal of one channel, and how it is then computed.
bool suits_windows(const Lowering& lowering, const ConvolutionCall& call);
Lowered<Value> add_windows(Lowering& lowering, const ConvolutionCall& call);
/// A pointwise convolution with a norm in front.
Lowered<Value> add_norm_pointwise(Lowering& lowering, const ConvolutionCall& call,
                                  const Lowering::Norm& norm);
/// A pointwise convolution with interpolations in front.
Lowered<Value> add_resized_pointwise(Lowering& lowering, const ConvolutionCall& call,
                                     const Lowering::Resized& resized);
/// A depthwise convolution with a pointwise one in front.
Lowered<Value> add_expand_depthwise(Lowering& lowering, const ConvolutionCall& call,
                                    const Lowering::Expansion& expansion);
/// What a batch norm multiplies by and adds, and whether a ReLU of the current group follows.
Lowered<Lowering::Norm> read_norm(Lowering& lowering, const BoundNode& node);

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

}  // namespace npu::onednn
