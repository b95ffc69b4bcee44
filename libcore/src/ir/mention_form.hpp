// SPDX-License-Identifier: Apache-2.0
// Lists of tensors in a node's object that say nothing but what the graph knows.
//
// Four fifths of a document are mentions of tensors. Where a list of them has the usual keys in the
// usual order, the object of its node holds a number in its place, a MentionForm, and the writer
// makes the same bytes of the graph. Likewise a name and an op type are null there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "npu/ir/graph.hpp"

namespace npu {

/// Which mentions of a list have producer_node and producer_output_idx behind name, shape and
/// dtype.
enum class MentionForm : std::uint8_t {
  kBare,           ///< none
  kResults,        ///< those of results
  kAllButWeights,  ///< those of results and of graph inputs, which name themselves
};

/// Whether a node computes the tensor, folded or not.
inline bool is_computed(const TensorInfo& tensor) noexcept {
  return tensor.kind == TensorKind::kResult || tensor.is_folded();
}

/// A mention that says nothing of a producer.
Json tensor_mention(std::string_view name, const Shape& shape, DType dtype);
/// The form that stands in `json` in place of a list; nothing if that is the list itself.
std::optional<MentionForm> mention_form(const Json& json) noexcept;
/// Whether a mention of a tensor names its producer in a list of this form.
bool names_producer(const TensorInfo& tensor, MentionForm form) noexcept;
/// A mention as it stands in a list of this form.
Json mention_json(const Graph& graph, TensorId id, MentionForm form);
/// Puts name, op type and both lists in the object of a node in place of what stands for them.
void expand_mentions(const Graph& graph, Node& node);

}  // namespace npu
