// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ops/align_class.hpp"

namespace npu {

/// The quantity that an op's arithmetic is proportional to.
enum class FlopBasis : std::uint8_t {
  kByKind,         ///< in a row: like most ops of its OpKind
  kNoFlops,        ///< moves or creates data
  kAllResults,     ///< elements of all results
  kResult,         ///< elements of the first result
  kFirstOperand,   ///< elements of the first operand
  kLastOperand,    ///< elements of the last operand
  kMatrixProduct,  ///< from here on by arguments: the innermost extent of `self`
  kLinear,
  kAddmm,
  kBaddbmm,
  kAddbmm,
  kAddmv,
  kBilinear,
  kEinsum,
  kConvolution,
  kTransposedConvolution,
  kAnyConvolution,  ///< transposed or not, depending on an argument
  kWindow,          ///< pooling
  kAdaptiveWindow,  ///< pooling that reads each element once
  kAttention,
  kMultiHeadAttention,
  kSegments,
  kRecurrent,
  kRecurrentCell,
};

/// How the floating-point operations of an op are counted.
struct FlopRule {
  // Not explicit: most rows of the catalogue have only a basis.
  constexpr FlopRule(FlopBasis what = FlopBasis::kByKind, std::int32_t each = 1) noexcept
      : basis(what), per_element(each) {}

  FlopBasis basis;
  std::int32_t per_element;  ///< for the bases that count elements

  /// Whether shapes alone do not suffice. Binding arguments costs more than all the rest.
  constexpr bool needs_arguments() const noexcept { return basis >= FlopBasis::kMatrixProduct; }
};

/// The rule of an op, never kByKind; nothing if the catalogue does not know it.
std::optional<FlopRule> find_flop_rule(std::string_view op_type);

/// The class that the catalogue gives the ops of a functional name (ops/op_name.hpp).
std::optional<AlignClass> catalogued_align_class(std::string_view name);

}  // namespace npu
