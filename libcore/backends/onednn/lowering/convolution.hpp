// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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

inline bool all_are(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](auto each) { return each == value; });
}
/// True if npu-align keeps the node row-major.
inline bool is_pinned(const Node& node) {
  const Json* mode = find_member(node.json, "align_mode");
  return mode != nullptr && *mode == "NALIGN";
}

/// Weights in the order of a kernel of our own, `count` of them, made when they are compiled.
/// `order` reads the row-major weights.
Value ordered_weights(Lowering& lowering, const Value& weight, std::size_t count, Kernel order);

/// A convolution with constant weights in two dimensions, not transposed, as a node's arguments
/// say.
struct ConvolutionReader {
  Shape source;
  Shape weight;
  Spatial spatial;  ///< without pad_end, which is pad_begin
  std::int64_t groups = 1;
};
/// What `node` is if it is such a convolution of `source` and not pinned; nothing for others, also
/// for wrong ones, of which lowering them says what is wrong.
std::optional<ConvolutionReader> convolution_reader(const Lowering& lowering, const Node& node,
                                                    TensorId source);

/// Adds the first of the candidates, a Winograd kernel, if it does all of the current group's
/// epilogue; else adds no computation and returns nothing.
std::optional<Value> add_winograd(Lowering& lowering, const ConvolutionCall& call,
                                  const std::vector<Candidate>& candidates);

/// The same for a PackedGemm or a Gemv.
std::optional<Value> add_pointwise(Lowering& lowering, const ConvolutionCall& call,
                                   const std::vector<Candidate>& candidates);
/// A convolution of one by one with a norm in front; nothing likewise.
std::optional<Value> add_norm_pointwise(Lowering& lowering, const ConvolutionCall& call,
                                        const Lowering::Norm& norm);
/// Leaves a batch norm, with a ReLU or without, to the convolution of one by one that alone reads
/// its result; returns what stands for the result.
std::optional<Value> defer_norm(Lowering& lowering, const Lowering::Norm& norm);

/// Leaves a convolution of one by one to the depthwise convolution that alone reads it, where one
/// kernel does both with all that the current group asks for; returns what stands for its result.
std::optional<Value> defer_expansion(Lowering& lowering, const ConvolutionCall& call);
/// Both in one kernel; throws EpilogueRefused.
Value add_expand_depthwise(Lowering& lowering, const ConvolutionCall& call,
                           const Lowering::Expansion& expansion);

}  // namespace npu::onednn
