// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "passes/states/past_formula.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// Which keys a mask shows, as npu.length_mask has it, and what it holds for these and others.
struct MaskForm {
  bool causal = false;  ///< otherwise all keys up to the last new one
  std::int64_t window = -1;
  double shown = 0;
  double hidden = 0;
  std::optional<std::size_t> rows = {};  ///< the dimension of new rows
};

/// The form of a formula over a tensor of a shape, whose keys lie along one dimension and whose new
/// rows along another. Nothing if it is none, and why in `reason`.
std::optional<MaskForm> mask_form(const PastModel& model, const Formula& formula,
                                  const SizeShape& shape, std::size_t keys_dim,
                                  std::string& reason);

/// The dimension along which a formula of a shape tells keys apart; the last one that has as many
/// elements as there are rows, if it tells none apart. Nothing if no dimension has.
std::optional<std::size_t> keys_dim(const PastModel& model, const Formula& formula,
                                    const SizeShape& shape);

}  // namespace npu::states
