// SPDX-License-Identifier: Apache-2.0
// Finds what a block computes without the backend, by structure.
//
// Every aggregation (model/aggregations.cpp) becomes one segment reduction, so gathered rows and
// messages are never stored; columns of rows are read in place, factors are computed beside the
// sum where they can be, and element-wise ops on the sum are applied where it is stored. O(nodes).
#include "gnn/block/find_reductions.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "gnn/model/aggregations.hpp"

namespace npu::gnn {
namespace {

class ReductionFinder {
 public:
  ReductionFinder(const Graph& graph, const std::map<std::string, Tensor>& weights)
      : graph_(graph), matcher_(graph), weights_(weights) {}

  OwnKernels find() {
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const Node& node = graph_.node(id);
      if (node.name.ends_with("@owned") &&
          graph_.tensor(node.inputs[0]).kind == TensorKind::kGraphInput) {
        found_[id.value] = OwnedSlice{node.outputs[0], node.inputs[0]};
      }
    }
    for (const auto& [id, aggregation] : find_aggregations(graph_)) {
      found_[id.value] = reduction_of(aggregation);
    }
    absorb_epilogues();
    return std::move(found_);
  }

 private:
  Reduction reduction_of(const Aggregation& aggregation) const {
    Reduction reduction;
    reduction.aggregate = aggregation.aggregate;
    reduction.result = aggregation.result;
    reduction.rows = aggregation.rows;
    reduction.gather = aggregation.gathers;
    if (aggregation.gathers) {
      const EdgeMatcher::Columns columns = matcher_.columns_of(aggregation.rows);
      if (columns.tensor != aggregation.rows) {
        reduction.rows = columns.tensor;
        reduction.first_column = columns.first;
        reduction.row_stride = columns.stride;
      }
    }
    if (aggregation.factor.valid()) {
      reduction.factor = aggregation.factor;
      reduction.factor_steps = find_edge_factors(graph_, aggregation.factor);
    }
    return reduction;
  }

  Reduction& reduction_at(std::int32_t node) { return std::get<Reduction>(found_.at(node)); }

  // A bias, an addition and a relu that alone read a sum are done where the sum is stored.
  void absorb_epilogues() {
    std::vector<std::int32_t> sums;
    for (const auto& [node, kernel] : found_) {
      const auto* reduction = std::get_if<Reduction>(&kernel);
      if (reduction != nullptr && reduction->rows.valid() &&
          graph_.tensor(reduction->result).shape.size() == 2) {
        sums.push_back(node);
      }
    }
    for (const std::int32_t node : sums) {
      Reduction& reduction = reduction_at(node);
      while (!reduction.relu && graph_.tensor(reduction.result).dtype == DType::kFloat32 &&
             absorb_reader(reduction)) {
      }
      const std::int32_t last = graph_.tensor(reduction.result).producer.value;
      if (last == node) continue;
      found_[last] = std::move(found_[node]);
      found_.erase(node);
    }
  }

  // What a sum may read besides what it sums.
  static bool is_row_type(DType dtype) {
    return dtype == DType::kFloat32 || dtype == DType::kBFloat16;
  }

  // Takes the only reader of the sum along; false if there is none that can be.
  bool absorb_reader(Reduction& reduction) {
    const Node* reader = matcher_.only_reader(reduction.result);
    if (reader == nullptr || reader->outputs.size() != 1) return false;
    const FusionRole role = fusion_role(reader->op_type);
    if (role == FusionRole::kRelu) {
      reduction.relu = true;
    } else if (role == FusionRole::kAdd) {
      if (!absorb_addition(*reader, reduction)) return false;
    } else if (role == FusionRole::kCast) {
      if (graph_.tensor(reader->outputs[0]).dtype != DType::kBFloat16) return false;
    } else if (!matcher_.is_alias(*reader)) {
      return false;
    }
    reduction.result = reader->outputs[0];
    return true;
  }

  bool absorb_addition(const Node& addition, Reduction& reduction) {
    if (addition.inputs.size() != 2 || find_member(addition.attrs(), "alpha") != nullptr) {
      return false;
    }
    const TensorId other = addition.inputs[addition.inputs[0] == reduction.result ? 1 : 0];
    const TensorInfo& info = graph_.tensor(other);
    const TensorInfo& sum = graph_.tensor(reduction.result);
    if (!is_row_type(info.dtype)) return false;
    if (info.kind == TensorKind::kWeight) {
      const auto bias = weights_.find(info.weight_key);
      if (info.shape != Shape{sum.shape[1]} || info.dtype != DType::kFloat32 ||
          reduction.bias.bytes() > 0 || bias == weights_.end() ||
          bias->second.shape() != info.shape) {
        return false;
      }
      reduction.bias = bias->second;
      return true;
    }
    if (info.kind != TensorKind::kResult || info.shape != sum.shape ||
        found_.contains(info.producer.value)) {
      return false;
    }
    if (absorb_own_rows(other, reduction)) return true;
    if (reduction.addend.valid()) return false;
    const EdgeMatcher::Columns columns = matcher_.columns_of(other);
    reduction.addend = matcher_.through_first_rows(columns.tensor);
    reduction.addend_column = columns.first;
    reduction.addend_stride = columns.stride;
    // Nothing else uses the memory of a matrix product's result.
    reduction.overwrites = columns.tensor == other && info.dtype == DType::kFloat32 &&
                           matcher_.only_reader(other) != nullptr &&
                           is_matrix_product(fusion_role(graph_.node(info.producer).op_type));
    return true;
  }

  // The node's own row times a factor: a self loop. Only before anything else is added.
  bool absorb_own_rows(TensorId addend, Reduction& reduction) const {
    const Node* product = matcher_.producer(addend, FusionRole::kMul);
    if (product == nullptr || product->inputs.size() != 2 ||
        matcher_.only_reader(addend) == nullptr || reduction.own.valid() ||
        reduction.addend.valid() || reduction.bias.bytes() > 0) {
      return false;
    }
    const Shape& shape = graph_.tensor(addend).shape;
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      const TensorInfo& factor = graph_.tensor(product->inputs[side]);
      const TensorInfo& rows = graph_.tensor(product->inputs[1 - side]);
      if (factor.shape != Shape{shape[0], 1} || factor.dtype != DType::kFloat32 ||
          rows.shape != shape || !is_row_type(rows.dtype)) {
        continue;
      }
      reduction.own_factor = product->inputs[side];
      const EdgeMatcher::Columns columns = matcher_.columns_of(product->inputs[1 - side]);
      reduction.own = matcher_.through_first_rows(columns.tensor);
      reduction.own_column = columns.first;
      reduction.own_stride = columns.stride;
      return true;
    }
    return false;
  }

  const Graph& graph_;
  const EdgeMatcher matcher_;
  const std::map<std::string, Tensor>& weights_;
  OwnKernels found_;
};

}  // namespace

OwnKernels find_reductions(const Graph& graph, const std::map<std::string, Tensor>& weights) {
  return ReductionFinder(graph, weights).find();
}

}  // namespace npu::gnn
