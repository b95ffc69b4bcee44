// SPDX-License-Identifier: Apache-2.0
// Halves the bytes of features: products read and write bfloat16 and add in float32, aggregations
// gather it and sum in float32.
//
// Every tensor that is bfloat16 has the name of the float32 one with a suffix, and is cast where a
// program reads it otherwise; what our own kernels read, they read as it is. A sum that a linear
// layer reads is cast in front of it, which find_reductions makes part of the sum. O(nodes of the
// block).
#include "gnn/block/bfloat16_features.hpp"

#include <set>
#include <utility>

#include "gnn/block/block_editor.hpp"
#include "gnn/block/block_steps.hpp"
#include "gnn/block/find_reductions.hpp"
#include "gnn/model/aggregations.hpp"
#include "gnn/model/staged_model.hpp"
#include "support/thread_count.hpp"
#include "support/thread_pool.hpp"

namespace npu::gnn {
namespace {

class Narrower {
 public:
  Narrower(Graph& graph, std::set<NodeId> computed)
      : graph_(graph), matcher_(graph), editor_(graph), computed_(std::move(computed)) {}

  bool rewrite() {
    const TensorId features = graph_.find_tensor(kFeatureInput);
    if (features.valid() && graph_.tensor(features).kind == TensorKind::kGraphInput) {
      retype(features);
    }
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) visit(id);
    for (const TensorId id : graph_.graph_outputs()) {
      if (retyped_.contains(id)) editor_.give(id, wide(id, id_at<NodeId>(graph_.nodes().size())));
    }
    if (narrow_.empty()) return false;
    editor_.commit();
    return true;
  }

 private:
  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    const FusionRole role = fusion_role(node.op_type);
    const bool is_computed = computed_.contains(id);
    if (is_computed && role == FusionRole::kLinear) {
      editor_.read(id, 0, narrow(node.inputs[0], id));
      for (std::size_t i = 1; i < node.inputs.size(); ++i) narrow_weight(node.inputs[i]);
      return rename(node.outputs[0]);
    }
    const bool moves = role == FusionRole::kSlice || matcher_.view(node.outputs[0]) != nullptr;
    if (moves && narrow_.contains(node.inputs[0])) {
      editor_.read(id, 0, narrow_.at(node.inputs[0]));
      return rename(node.outputs[0]);
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto known = narrow_.find(node.inputs[i]);
      if (known == narrow_.end()) continue;
      editor_.read(id, i, is_computed ? wide(node.inputs[i], id) : known->second);
    }
  }

  // A tensor that is bfloat16 itself.
  void retype(TensorId id) {
    editor_.wire(id).dtype = DType::kBFloat16;
    narrow_[id] = editor_.wire(id);
    retyped_.insert(id);
  }

  // The same for a result. Owned rows of inputs keep their names.
  void rename(TensorId id) {
    std::string& name = editor_.wire(id).name;
    if (!name.ends_with("@owned")) name += "@bf16";
    retype(id);
  }

  // Weights below each other, as linear_before_aggregate puts them, are narrow as a whole.
  void narrow_weight(TensorId id) {
    editor_.wire(id).dtype = DType::kBFloat16;
    const Node* joined = matcher_.producer(id, FusionRole::kCat);
    if (joined == nullptr) return;
    for (const TensorId each : joined->inputs) narrow_weight(each);
  }

  // Rounded values of a tensor, made before `reader` if nothing has made them yet.
  const Wire& narrow(TensorId id, NodeId reader) {
    const auto known = narrow_.find(id);
    if (known != narrow_.end()) return known->second;
    const Wire& stated = editor_.wire(id);
    const Wire made{stated.name + "@bf16", stated.shape, DType::kBFloat16};
    cast(stated, made, reader);
    return narrow_[id] = made;
  }

  // Float32 values of a tensor that has rounded ones, likewise.
  Wire wide(TensorId id, NodeId reader) {
    if (!retyped_.contains(id)) return editor_.wire(id);
    const auto known = wide_.find(id);
    if (known != wide_.end()) return known->second;
    const Wire& narrow = editor_.wire(id);
    const std::string& stated = graph_.tensor(id).name;
    const Wire made{narrow.name == stated ? stated + "@f32" : stated, narrow.shape};
    cast(narrow, made, reader);
    return wide_[id] = made;
  }

  void cast(const Wire& from, const Wire& to, NodeId reader) {
    editor_.insert_before(reader, {"aten._to_copy.default",
                                   {from},
                                   to,
                                   {{"dtype", "torch." + std::string(dtype_name(to.dtype))}}});
  }

  const Graph& graph_;
  const EdgeMatcher matcher_;
  BlockEditor editor_;
  std::set<NodeId> computed_;        // by programs
  std::map<TensorId, Wire> narrow_;  // rounded values by tensor
  std::map<TensorId, Wire> wide_;    // float32 values of those that are rounded themselves
  std::set<TensorId> retyped_;
};

}  // namespace

bool bfloat16_features(Graph& block, const std::map<std::string, Tensor>& weights) {
  return Narrower(block, nodes_in_programs(block, find_reductions(block, weights))).rewrite();
}

Tensor to_bfloat16(const Tensor& values, std::int32_t threads) {
  Tensor result(DType::kBFloat16, values.shape());
  const float* from = values.as<float>();
  auto* to = result.as_mutable<std::uint16_t>();
  const auto count = static_cast<std::size_t>(values.element_count());
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  run_pieces((count + kPiece - 1) / kPiece, thread_count(threads), [&](std::size_t piece) {
    const std::size_t end = std::min(count, (piece + 1) * kPiece);
    for (std::size_t i = piece * kPiece; i < end; ++i) to[i] = float_to_bfloat16(from[i]);
  });
  return result;
}

}  // namespace npu::gnn
