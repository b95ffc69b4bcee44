// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "passes/states/key_rows.hpp"
#include "passes/states/mask_form.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// An attention over rows of a cache, as an op or as the product, softmax and product that it is.
struct CacheAttention {
  TensorId query, key, value;  ///< [batch, heads, rows, width]
  MaskForm mask;
  std::optional<double> scale = {};  ///< nothing: as the op has it
  bool shares_heads = false;         ///< heads of the query share those of keys and values
};

/// Scores behind a mask.
struct MaskedScores {
  TensorId scores;
  MaskForm mask;
};

/// What a node that masks scores of a cache's keys does, by a sum or by a choice; nothing if it
/// does anything else.
std::optional<MaskedScores> masked_scores(const PastModel& model, const Node& node,
                                          const PastTensors& tensors);

/// The attention whose result is that of a node; nothing if it is none of this form.
std::optional<CacheAttention> written_attention(const PastModel& model, const Node& node,
                                                const PastTensors& tensors);

}  // namespace npu::states
