// SPDX-License-Identifier: Apache-2.0
// Patterns of what kernels compute: a backend that has such a kernel takes the whole group, and a
// target names the patterns that its devices have. Unlike the general patterns they ask for
// everything that the kernel needs, down to shapes and dtypes, so that a backend can do each group
// as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/fusion/fusion_builder.hpp"

namespace npu::fusion {

/// Kernels take channels in blocks of so many.
inline constexpr std::int64_t kChannelBlock = 16;

/// float32, and float16, which is float32 inside of such a backend.
constexpr bool is_single(DType dtype) noexcept {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16;
}

/// Who reads what, without nodes that no graph output needs.
class Readers {
 public:
  /// O(nodes + edges).
  explicit Readers(const FusionBuilder& builder);
  bool unused(std::int32_t n) const { return unused_[static_cast<std::size_t>(n)] != 0; }
  /// The only node that reads a tensor, once; -1 if there is none, or if it is a graph output.
  std::int32_t only(TensorId id) const { return only_[index_of(id)]; }

 private:
  std::vector<char> unused_;
  std::vector<std::int32_t> only_;
};

/// A convolution in two dimensions that is not transposed, with known weights.
struct ConvolutionFacts {
  Shape source;
  Shape weight;
  Shape result;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> dilation;
  std::int64_t groups = 1;

  /// A filter of one point that reads all channels, with stride 1.
  bool is_pointwise() const;
};
/// Nothing for other nodes, and for those that npu-align keeps row-major.
std::optional<ConvolutionFacts> convolution_facts(const FusionBuilder& builder, std::int32_t n);

/// By tensor: whether integers, truth or an order follow from it through element-wise ops and
/// views.
std::vector<bool> deciding_tensors(const Graph& graph);

bool is_weight(const FusionBuilder& builder, TensorId id);
/// Multiplication or division by a number.
bool is_factor(const FusionBuilder& builder, std::int32_t n);
/// True for an op whose result has its first operand's elements in the same row-major order.
bool keeps_row_major(const FusionBuilder& builder, std::int32_t n);

// The stages of match_kernels.
void claim_unused(FusionBuilder& builder, const Readers& readers);
void claim_constants(FusionBuilder& builder);
void match_integer_products(FusionBuilder& builder, const Readers& readers);
void match_quantized(FusionBuilder& builder, const Readers& readers);
void match_scaled_attention(FusionBuilder& builder, const Readers& readers);
void match_channel_gates(FusionBuilder& builder, const Readers& readers);
void match_written_gelu(FusionBuilder& builder, const Readers& readers);
void match_linear_siblings(FusionBuilder& builder, const Readers& readers);
void match_post_ops(FusionBuilder& builder, const Readers& readers);
void place_concats(FusionBuilder& builder, const Readers& readers);
void share_copies(FusionBuilder& builder);

}  // namespace npu::fusion
