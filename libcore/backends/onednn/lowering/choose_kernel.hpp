// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/gemv.hpp"
#include "kernels/grouped_convolution.hpp"
#include "kernels/half_gemm.hpp"
#include "kernels/implicit_gemm.hpp"
#include "kernels/packed_gemm.hpp"
#include "kernels/winograd.hpp"
#include "lowering/epilogue.hpp"
#include "lowering/machine.hpp"
#include "npu/tensor/dtype.hpp"
#include "npu/tensor/tensor.hpp"
#include "program/kernel_choice.hpp"

namespace npu::onednn {

/// How a convolution walks over its source.
struct Spatial {
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> pad_begin;
  std::vector<std::int64_t> pad_end;
  std::vector<std::int64_t> dilation;  ///< as PyTorch counts: 1 is none
};

inline bool all_are(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](auto each) { return each == value; });
}

/// A convolution as far as the choice of its kernel goes.
struct ConvolutionShape {
  DType type = DType::kFloat32;
  Shape source;
  Shape weight;  ///< [O, I / groups, ..]
  Shape target;
  Spatial spatial;
  std::int64_t groups = 1;
  bool has_constant_weight = true;
  bool is_pinned = false;  ///< npu-align keeps the node row-major
  std::int64_t depth = 1;  ///< convolutions one behind the other, this one included, of the sub-IR
  double sub_ir_flops = 0.0;  ///< of all nodes of the sub-IR
};

/// target [rows, columns] = source [rows, inner] * the transpose of a constant weight, in float32.
struct ProductShape {
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  std::int64_t columns = 1;
  std::int64_t source_row = 1;  ///< floats from one row of the source to the next
  /// Not 0: rows of the source are cut into blocks of vectors that are so many floats apart.
  std::int64_t source_block{};
  bool blocked_target{};  ///< so are those of the target, whose blocks have all rows
};

/// One way to compute a node: its estimate, or why it is none.
struct Candidate {
  using Kernel = std::variant<std::monostate, Winograd, ImplicitGemm, GroupedConvolution,
                              PackedGemm, HalfGemm, Gemv>;
  std::string_view name;
  Kernel kernel;  ///< without epilogue, bias and norm; std::monostate: oneDNN's primitive
  std::optional<double> cycles;
  std::string refusal;  ///< set if `cycles` is not
  bool is_own() const noexcept { return !std::holds_alternative<std::monostate>(kernel); }
  /// The rounding error of a result, root mean square, in units of 2^-24 of the results; set if the
  /// kernel rounds more than the definition does.
  std::optional<double> rounding{};
};

/// All candidates, the one to take first. Each says whether it does the epilogue.
std::vector<Candidate> choose_convolution(const ConvolutionShape& shape, const Epilogue& epilogue,
                                          const Machine& machine);
std::vector<Candidate> choose_product(const ProductShape& shape, const Epilogue& epilogue,
                                      const Machine& machine);

/// A convolution in three dimensions as one in two, where it is that for each frame, each then an
/// image, or has its taps in time: then the pixels of a frame are the width.
std::optional<ConvolutionShape> in_two_dimensions(const ConvolutionShape& shape);

/// True if a convolution with dilation is the same as ones without, each of the pixels that are a
/// multiple of the dilation apart. Its kernel then has that many images more.
bool splits_into_phases(const ConvolutionShape& shape);

/// Puts the first candidate behind the others for a reason that only lowering knows.
void refuse_first(std::vector<Candidate>& candidates, std::string reason);

/// What the report says of a choice, `taken` being the candidate at the front.
KernelChoice choice_of(const std::vector<Candidate>& candidates);

/// The product that a pointwise convolution is, on channels in blocks.
PackedGemm pointwise_gemm(const Shape& target, std::int64_t source_channels,
                          const Machine& machine);
bool is_pointwise(const Shape& weight, const Spatial& spatial, std::int64_t groups);
/// Whether a product with a batch norm in front takes less time than both.
bool suits_norm(const PackedGemm& gemm, const Machine& machine);
/// Whether Strassen's step is worth its sums.
bool suits_strassen(const PackedGemm& gemm);

}  // namespace npu::onednn
