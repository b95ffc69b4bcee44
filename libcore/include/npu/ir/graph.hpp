// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "npu/ir/name_table.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// Index of a node in Graph::nodes(). In a verified graph, list order is a topological order.
struct NodeId {
  std::int32_t value = -1;
  bool valid() const noexcept { return value >= 0; }
  auto operator<=>(const NodeId&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Index of a tensor in Graph::tensors().
struct TensorId {
  std::int32_t value = -1;
  bool valid() const noexcept { return value >= 0; }
  auto operator<=>(const TensorId&) const = default;  // NOLINT(modernize-use-nullptr)
};

enum class TensorKind : std::uint8_t {
  kGraphInput,  ///< listed in graph_inputs
  kWeight,      ///< parameter, buffer or lifted constant: no node produces its data
  kResult,      ///< produced by a node
};

/// One value of the graph, however many places mention it.
struct TensorInfo {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
  TensorKind kind = TensorKind::kWeight;
  NodeId producer;           ///< valid for kResult only
  std::int32_t result = 0;   ///< which result of the producer
  std::string weight_key;    ///< kWeight: the state-dict key that weights[] and the weight file use
  bool is_constant = false;  ///< kWeight: its data is in the document's `constants`
  std::int32_t folded = -1;  ///< kWeight: the place in Graph::folded() of the node that computes it
  std::vector<NodeId> consumers;  ///< ascending, each node once

  bool is_folded() const noexcept { return folded >= 0; }

  /// Row-major size. The reader has checked that it fits in 63 bits.
  std::int64_t bytes() const noexcept;
};

/// One operator. `json` is the object as it was read; the typed fields take precedence over it when
/// the document is written.
struct Node {
  std::string name;
  std::string op_type;
  std::vector<TensorId> inputs;   ///< tensor operands, flattened in schema order
  std::vector<TensorId> outputs;  ///< results
  std::optional<std::string> device;
  std::optional<std::string> device_reason;
  std::optional<std::int64_t> partition;
  std::optional<std::int64_t> fusion_group;
  Json json;

  /// The `attrs` object; an empty one if the node has none.
  const Json& attrs() const noexcept;
};

/// A node that no device runs: its results follow from weights and constants alone, are computed
/// once, when the model is compiled, and are weights to all other nodes.
struct FoldedNode {
  Node node;                ///< `json` has "folded": true
  std::int32_t before = 0;  ///< it stands in the document before this node of Graph::nodes()
};

/// Lets a map with string keys be searched by string_view.
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept {
    return std::hash<std::string_view>{}(name);
  }
};
template <typename Id>
using NameIndex = std::unordered_map<std::string, Id, NameHash, std::equal_to<>>;

/// A model as one document of npu-ir(5). Keys that it does not understand are kept and written
/// back.
class Graph {
 public:
  std::string file;  ///< where it was read from, for messages ("<stdin>"; empty if built in memory)

  const std::string& model_name() const noexcept { return model_name_; }
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  std::vector<Node>& nodes() noexcept { return nodes_; }
  /// Those that are folded (npu-ir(5)), in list order; they are not among nodes().
  const std::vector<FoldedNode>& folded() const noexcept { return folded_; }
  std::vector<FoldedNode>& folded() noexcept { return folded_; }
  const Node& node(NodeId id) const { return nodes_[index_of(id)]; }
  Node& node(NodeId id) { return nodes_[index_of(id)]; }
  const std::vector<TensorInfo>& tensors() const noexcept { return tensors_; }
  const TensorInfo& tensor(TensorId id) const { return tensors_[index_of(id)]; }
  const std::vector<TensorId>& graph_inputs() const noexcept { return graph_inputs_; }
  const std::vector<TensorId>& graph_outputs() const noexcept { return graph_outputs_; }

  /// Invalid if there is no such tensor or node; a folded node has no NodeId. Names are those that
  /// the graph was read with.
  TensorId find_tensor(std::string_view name) const;
  NodeId find_node(std::string_view name) const;

  /// The top level without the nodes: model_name, weights, constants, npu, unknown keys.
  const Json& document() const noexcept { return document_; }
  Json& document() noexcept { return document_; }
  /// The member `npu.<key>`, or null.
  const Json* npu_member(std::string_view key) const noexcept;
  /// Sets `npu.<key>`; also writes `npu.version` if it is missing.
  void set_npu_member(std::string_view key, Json value);
  void erase_npu_member(std::string_view key);

  /// The name of the node that computes a result, folded or not.
  const std::string& producer_name(const TensorInfo& tensor) const;

  /// "/nodes/3" etc., with the file, for diagnostics.
  InputLocation location(NodeId id, std::string_view below = {}) const;

 private:
  friend class GraphAssembler;
  std::string model_name_;
  std::vector<Node> nodes_;
  std::vector<FoldedNode> folded_;
  std::vector<TensorInfo> tensors_;
  std::vector<TensorId> graph_inputs_;
  std::vector<TensorId> graph_outputs_;
  NameTable tensor_names_;
  NameTable node_names_;
  Json document_;
};

}  // namespace npu

template <>
struct std::hash<npu::NodeId> {
  std::size_t operator()(npu::NodeId id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
template <>
struct std::hash<npu::TensorId> {
  std::size_t operator()(npu::TensorId id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
