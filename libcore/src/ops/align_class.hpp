// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npu {

/// The name of the op that converts a tensor between its two layouts.
inline constexpr std::string_view kChannelNorm = "npu.channel_norm";

/// The classes of ops that an accelerator's kernel library distinguishes with respect to layout.
enum class AlignClass : std::uint8_t {
  kNone,
  kGemm,  ///< matrix products, attention included
  kConv,
  kPool,
  kReduce,
  kTranspose,
  kConcatenate,
  kScatter,
  kPad,
  kSlice,
  kReshape,
  kNormalization,
  kSoftmax,
};

/// The class of an op type. All overloads and in-place forms of an op have the same class, whether
/// the catalogue knows them or not.
AlignClass align_class(std::string_view op_type) noexcept;

/// "gemm", "conv", ...; "none" for kNone.
std::string_view align_class_name(AlignClass align_class) noexcept;
/// Inverse of align_class_name, for classes other than kNone.
std::optional<AlignClass> parse_align_class(std::string_view name) noexcept;
/// The names of all classes but kNone.
std::vector<std::string> align_class_names();

}  // namespace npu
