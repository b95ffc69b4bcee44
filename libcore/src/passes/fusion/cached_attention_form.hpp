// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// The op of a mask over the keys of a cache.
inline constexpr std::string_view kLengthMask = "npu.length_mask";

/// An attention over a cache that is written out, as its kernel computes it: of the scores
/// scale * query key, behind a cap and with a bias if there are such, those of the keys in the
/// lengths, and of sinks if there are some, the softmax; and its product with the values.
struct CachedAttentionForm {
  TensorId query;    ///< [.., L, D]
  TensorId key;      ///< [.., D, S]: rows are columns
  TensorId value;    ///< [.., S, E]
  NodeId lengths;    ///< npu.length_mask, of L rows or 1, and S keys
  double scale = 1;  ///< of a score, in front of the cap
  double cap = 0;    ///< what the tanh of a score is multiplied with; 0: there is none
  TensorId bias;     ///< is added to scores, and may hide the same keys as the lengths; or none
  Shape bias_space;  ///< shape of the scores that it is added to, which have the same planes
  TensorId sinks;    ///< scores without a value, [.., 1, 1], one for a plane or several; or none
  NodeId masking;    ///< what hides scores
  TensorId mask;     ///< what that reads, and the kernel does not; none if that is the bias
  std::vector<NodeId> nodes;  ///< in list order; the last one is the product with the values
};

/// The attention whose last product is `last`; nothing if it is none of this form: one with other
/// masks, with factors behind a mask, or whose parts have other readers. O(1), of at most some
/// twenty nodes.
std::optional<CachedAttentionForm> cached_attention_form(const Graph& graph, NodeId last);

/// The mask of lengths [1, 1, L or 1, S] by which numbers that are added to scores [.., L, S] hide
/// keys; nothing if they hide none for certain, or others.
struct HiddenLengths {
  NodeId lengths;
  bool is_mask = false;  ///< they are 0 for the other keys
};
std::optional<HiddenLengths> hidden_lengths(const Graph& graph, TensorId added);

/// Whether a node gives the opposite of a mask of lengths.
bool is_opposite_length_mask(const Graph& graph, NodeId id);

}  // namespace npu
