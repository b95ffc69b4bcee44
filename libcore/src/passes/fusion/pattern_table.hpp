// SPDX-License-Identifier: Apache-2.0
// The names of the built-in patterns. In code a pattern is its name, "conv-bn"_pattern, which has
// to stand in this table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "npu/passes/fuse.hpp"

namespace npu::fusion {

inline constexpr auto kPatterns = std::to_array<FusionPattern>({
    {"chain", false, false, "conv+bn+act, conv+bn, conv+act, add+act; stops at forks and joins"},
    {"multi-head-attention", false, true,
     "projections, attention and output projection as one block"},
    {"attention", true, true, "matmul, scale, mask, softmax and matmul"},
    {"squeeze-excite", true, true, "pooled channel gate: pool, convolutions, sigmoid, multiply"},
    {"rms-norm", true, true, "rms_norm, also written out, with element-wise ops before and behind"},
    {"layer-norm", true, true, "layer_norm and group_norm, also written out, likewise"},
    {"conv-bn-act", true, true, "convolution, batch norm, activation"},
    {"conv-bn", true, true, "convolution, batch norm"},
    {"conv-act", true, true, "convolution, activation"},
    {"linear-act", true, true, "matrix product, activation"},
    {"residual", true, true,
     "convolution or matrix product, batch norm or none, add, activation or none"},
    {"linear-bn-act", true, true, "matrix product, batch norm, activation or none"},
    {"epilogue", true, true, "convolution or matrix product and any element-wise ops behind it"},
    {"reduction", true, true, "reduction, pooling or softmax and element-wise ops around it"},
    {"depthwise-pointwise", true, true,
     "depthwise convolution group and the pointwise one behind it"},
    {"qkv-merge", false, true, "matrix products with weights that read one input"},
    {"horizontal", true, true, "convolutions or matrix products on one input that meet in a cat"},
    {"concat-slices", false, true, "cat whose operands are written where the result needs them"},
    {"elementwise", true, true, "element-wise ops, of one shape or broadcast"},
    {"injective", true, true, "cat, pad, embedding and the like into element-wise ops behind them"},
    // What kernels of a backend compute; a target asks for them.
    {"scaled-attention", false, false,
     "batched products around a softmax of rows, factors, masks, lengths of 1"},
    {"cached-attention", false, false,
     "attention whose mask is the length of a cache, also written out, with a cap, bias and sinks"},
    {"channel-gate", false, false,
     "plane means, two pointwise convolutions with activations, multiply"},
    {"written-gelu", false, false, "GELU written out by erf, or by tanh of a polynomial"},
    {"written-rms-norm", false, false,
     "RMS norm of rows written out in one dtype, and the product with its weights"},
    {"linear-siblings", false, false,
     "linear layers on one input whose results are reshaped or permuted"},
    {"conv-post-ops", false, false, "convolution and what a primitive does before it stores"},
    {"product-post-ops", false, false, "matrix product, likewise"},
    {"norm-relu", false, false, "batch norm and ReLU"},
    {"norm-pointwise", false, false, "batch norm, ReLU or none, and pointwise convolution group"},
    {"expand-depthwise", false, false, "pointwise convolution group and the depthwise one behind"},
    {"resized-pointwise", false, false, "interpolations, cat and pointwise convolution group"},
    {"quantized", false, false, "dequantized operands, op, functions behind it, quantization"},
    {"concat-in-place", false, false, "cat whose operands are written into its result; no kernel"},
    {"dequantized-on-read", false, false, "dequantization that quantized groups read; no kernel"},
    {"mask-on-read", false, false, "mask of lengths that cached attentions read; no kernel"},
    {"no-copy", false, false, "copy that shares its operand's memory; no kernel"},
    {"constant", false, false, "op on weights alone, computed when compiling; no kernel"},
    {"unused", false, false, "op whose results nothing needs; no kernel"},
});

/// A place in the table; behind its end are the user's patterns, by their index.
enum class Pattern : std::int32_t {};
constexpr std::optional<Pattern> find_pattern(std::string_view name) {
  for (std::size_t p = 0; p < kPatterns.size(); ++p) {
    if (kPatterns[p].name == name) return Pattern{static_cast<std::int32_t>(p)};
  }
  return std::nullopt;
}
consteval Pattern operator""_pattern(const char* name, std::size_t size) {
  return find_pattern({name, size}).value();
}

/// Patterns of what kernels compute, see patterns.hpp.
constexpr bool is_of_kernels(Pattern pattern) noexcept {
  return pattern >= "scaled-attention"_pattern && pattern <= "unused"_pattern;
}
/// Patterns whose only purpose is to name nodes that need no kernel.
constexpr bool is_kernelless(Pattern pattern) noexcept {
  return pattern >= "concat-in-place"_pattern && pattern <= "unused"_pattern;
}

}  // namespace npu::fusion
