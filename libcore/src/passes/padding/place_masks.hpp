// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "passes/padding/infer_tails.hpp"

namespace npu::padding {

/// One operand of one node.
struct OperandUse {
  NodeId node;
  std::int32_t operand = 0;
  auto operator<=>(const OperandUse&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Rows of one tensor that are written anew, for some of its readers.
struct MaskPlace {
  TensorId tensor;
  std::int32_t dim = 0;
  Fill fill = Fill::kZero;
  std::vector<OperandUse> readers;  ///< in order, each once
};

/// Masks that meet needs, and a flow that proves that no masks of fewer bytes do, as far as each
/// class of rows is looked at alone, and where one of several factors can be masked, the one that
/// is.
struct MaskPlan {
  std::vector<MaskPlace> masks;
  std::int64_t cut = 0;
  std::int64_t flow = 0;
};

/// Where masks with `fill` must stand so that all needs for it are met: a minimum cut between what
/// breaks the class and what needs it, weighted by the bytes of tensors. Nothing if none is unmet.
/// Near-linear in the part of the graph in front of the needs, for each of the choices of factors.
MaskPlan place_masks(const Graph& graph, const PaddingAnalysis& analysis, const TensorSizes& shapes,
                     Fill fill);

/// A mask in front of each need that is not met, whatever fill it asks for.
MaskPlan place_masks_at_needs(const Graph& graph, const PaddingAnalysis& analysis);

}  // namespace npu::padding
