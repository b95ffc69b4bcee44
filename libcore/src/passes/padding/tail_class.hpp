// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npu::padding {

/// What a mask writes into rows behind the valid ones.
enum class Fill : std::uint8_t { kZero, kLowest, kEdge };
/// The value of `fill` of npu.tail: "zero", "lowest", "edge".
std::string_view fill_name(Fill fill) noexcept;
std::optional<Fill> parse_fill(std::string_view name) noexcept;

/// What is known of the rows behind the valid ones along one dimension of a tensor, whatever the
/// other indices are, those behind the valid ones of other dimensions included.
struct TailClass {
  bool repeat = false;  ///< they equal the last valid row
  bool zero = false;    ///< they are 0, or false
  bool lowest = false;  ///< they are minus infinity
  /// They have no infinity and no NaN, but where another dimension has minus infinity by `lowest`.
  bool finite = false;

  bool operator==(const TailClass&) const = default;
  /// Whether all that `other` claims holds here, too.
  bool implies(const TailClass& other) const noexcept;
  /// "R", "Z", "N", "F", or "A" for nothing; "RZ" for rows that are 0 as the last valid one is. R
  /// says nothing of `finite`, which follows from the other dimensions.
  std::string text() const;
  static std::optional<TailClass> parse(std::string_view text) noexcept;
};

/// What the valid part of a tensor may hold by what makes it: inputs, weights and results of
/// arithmetic are taken to be finite.
enum class ValueClass : std::uint8_t {
  kFinite,
  kNotAbove,  ///< also minus infinity
  kAny,
};

/// One tensor of a padded graph.
struct TensorTails {
  std::vector<TailClass> dims;  ///< by dimension; those that do not vary are not looked at
  ValueClass value = ValueClass::kFinite;
  bool is_constant = false;  ///< depends on no input of the graph
};

}  // namespace npu::padding
