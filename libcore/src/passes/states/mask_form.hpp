// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "passes/states/past_formula.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// A score that is less than this has no weight in a softmax beside any that is not hidden.
inline constexpr double kHiddenScore = -1e8;

/// Which keys a mask shows, as npu.length_mask has it, and what it holds for these and others.
struct MaskForm {
  bool causal = false;  ///< otherwise all keys up to the last new one
  std::int64_t window = -1;
  double shown = 0;
  double hidden = 0;
};

/// The form of a formula over a tensor of a shape, whose keys lie along the dimension of all rows
/// and whose new rows along that of these. Nothing if it is none, and why in `reason`.
std::optional<MaskForm> mask_form(const PastModel& model, const Formula& formula,
                                  const SizeShape& shape, std::string& reason);

}  // namespace npu::states
