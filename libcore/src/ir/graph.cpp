// SPDX-License-Identifier: Apache-2.0
// Look-ups by name, and the accessors of the `npu` member.
#include "npu/ir/graph.hpp"

#include <algorithm>

namespace npu {

std::int64_t TensorInfo::bytes() const noexcept {
  auto size = static_cast<std::int64_t>(dtype_size(dtype));
  for (const std::int64_t dimension : shape) size *= dimension;
  return size;
}

const Json& Node::attrs() const noexcept {
  static const Json empty = Json::object();
  const Json* found = find_member(json, "attrs");
  return found != nullptr && found->is_object() ? *found : empty;
}

TensorId Graph::find_tensor(std::string_view name) const {
  return {tensor_names_.find(
      name, [&](std::int32_t i) -> const std::string& { return tensors_[index_of(i)].name; })};
}

NodeId Graph::find_node(std::string_view name) const {
  return {node_names_.find(
      name, [&](std::int32_t i) -> const std::string& { return nodes_[index_of(i)].name; })};
}

const Json* Graph::npu_member(std::string_view key) const noexcept {
  const Json* npu = find_member(document_, "npu");
  return npu == nullptr ? nullptr : find_member(*npu, key);
}

void Graph::set_npu_member(std::string_view key, Json value) {
  if (find_member(document_, "npu") == nullptr) set_member(document_, "npu", Json::object());
  Json& npu = *find_member(document_, "npu");
  if (find_member(npu, "version") == nullptr) set_member(npu, "version", 1);
  set_member(npu, key, std::move(value));
}

void Graph::erase_npu_member(std::string_view key) {
  if (Json* npu = find_member(document_, "npu")) npu->erase(std::string(key));
}

const std::string& Graph::producer_name(const TensorInfo& tensor) const {
  return tensor.is_folded() ? folded_[static_cast<std::size_t>(tensor.folded)].node.name
                            : node(tensor.producer).name;
}

InputLocation Graph::location(NodeId id, std::string_view below) const {
  // Folded nodes before it count in the document's list.
  const auto behind =
      std::upper_bound(folded_.begin(), folded_.end(), id.value,
                       [](std::int32_t n, const FoldedNode& folded) { return n < folded.before; });
  const auto place = id.value + (behind - folded_.begin());
  return {.file = file, .pointer = "/nodes/" + std::to_string(place) + std::string(below)};
}

}  // namespace npu
