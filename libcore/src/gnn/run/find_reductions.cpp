// SPDX-License-Identifier: Apache-2.0
// Finds what a block computes without the backend, by structure.
//
// An index_add of messages by target, or a scatter_reduce that takes the largest of them, is traced
// back through aliases, a factor per edge and a gather: that chain becomes one segment reduction
// (csr_kernels.cpp), so gathered rows and messages are never stored. A division of the sum by the
// clamped number of edges makes the reduction a mean, and element-wise ops on the sum are applied
// where it is stored. O(nodes).
#include "gnn/run/find_reductions.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gnn/model/staged_model.hpp"
#include "gnn/run/gnn_matcher.hpp"

namespace npu::gnn {
namespace {

class ReductionFinder {
 public:
  ReductionFinder(const Graph& graph, std::int64_t edges,
                  const std::map<std::string, Tensor>& weights)
      : graph_(graph), matcher_(graph), edges_(edges), weights_(weights) {}

  OwnKernels find() {
    find_sums();
    absorb_epilogues();
    return std::move(found_);
  }
  OwnKernels sums() {
    find_sums();
    return std::move(found_);
  }

 private:
  void find_sums() {
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      const auto id = static_cast<std::int32_t>(n);
      if (node.name.ends_with("@owned") &&
          graph_.tensor(node.inputs[0]).kind == TensorKind::kGraphInput) {
        found_[id] = OwnedSlice{node.outputs[0], node.inputs[0]};
      } else if (const auto aggregate = aggregate_of(node)) {
        if (auto reduction = reduction_of(node, *aggregate)) found_[id] = std::move(*reduction);
      }
    }
    absorb_means();
  }

  // What a node makes of messages by target; nothing if it does not.
  std::optional<Aggregate> aggregate_of(const Node& node) const {
    if (graph_.tensor(node.outputs[0]).dtype != DType::kFloat32) return std::nullopt;
    if (matcher_.is_sum_by_target(node)) return Aggregate::kSum;
    if (matcher_.is_largest_by_target(node)) return Aggregate::kLargest;
    return std::nullopt;
  }

  // Null if the node makes no reduction (any more).
  Reduction* reduction_at(std::int32_t node) {
    const auto found = found_.find(node);
    return found == found_.end() ? nullptr : std::get_if<Reduction>(&found->second);
  }
  Reduction* reduction_of_result(TensorId id) {
    const TensorInfo& tensor = graph_.tensor(id);
    return tensor.kind == TensorKind::kResult ? reduction_at(tensor.producer.value) : nullptr;
  }

  // What makes `result` later on makes it at the node `to`.
  void move(std::int32_t from, std::int32_t to) {
    found_[to] = std::move(found_[from]);
    found_.erase(from);
  }

  std::optional<Reduction> reduction_of(const Node& node, Aggregate aggregate) const {
    Reduction reduction;
    reduction.aggregate = aggregate;
    reduction.result = reduction.sum = node.outputs[0];
    TensorId message = matcher_.through_alias(node.inputs[2]);
    const Shape& shape = graph_.tensor(message).shape;
    if (aggregate == Aggregate::kSum && matcher_.is_fill(message, "aten.ones.default") &&
        shape.size() == 1) {
      return reduction;  // the in-degree
    }
    message = without_factor(message, shape, reduction);
    if (const TensorId source = matcher_.gathered_from(message); source.valid()) {
      const GnnMatcher::Columns columns = matcher_.columns_of(source);
      reduction.rows = columns.tensor;
      reduction.gather = true;
      reduction.gathered = source;
      if (columns.tensor != source) {
        reduction.first_column = columns.first;
        reduction.row_stride = columns.stride;
      }
      return reduction;
    }
    if (!matcher_.is_per_edge(message, edges_)) return std::nullopt;
    reduction.rows = message;
    return reduction;
  }

  // The message without a factor per edge, which becomes part of the reduction.
  TensorId without_factor(TensorId message, const Shape& shape, Reduction& reduction) const {
    const Node* product = matcher_.producer(message);
    if (product == nullptr || product->op_type != "aten.mul.Tensor" ||
        product->inputs.size() != 2) {
      return message;
    }
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      const TensorId factor = matcher_.factor_of(product->inputs[side], shape);
      const TensorId other = product->inputs[1 - side];
      if (!factor.valid() || graph_.tensor(other).shape != shape) continue;
      reduction.factor = factor;
      reduction.factor_steps = find_edge_factors(graph_, factor, edges_);
      return matcher_.through_alias(other);
    }
    return message;
  }

  // sum / clamp(count, 1): the sum becomes a mean where nothing else reads it.
  void absorb_means() {
    std::map<std::int32_t, std::int32_t> mean_of;  // division -> index_add
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (node.op_type != "aten.div.Tensor" || node.inputs.size() != 2) continue;
      const TensorInfo& sum = graph_.tensor(node.inputs[0]);
      if (sum.kind != TensorKind::kResult || sum.consumers.size() != 1) continue;
      Reduction* reduction = reduction_at(sum.producer.value);
      const auto& outputs = graph_.graph_outputs();
      const bool is_output =
          std::find(outputs.begin(), outputs.end(), node.inputs[0]) != outputs.end();
      if (reduction == nullptr || !reduction->rows.valid() || is_output ||
          reduction->aggregate != Aggregate::kSum ||
          !is_edge_count(node.inputs[1], sum.shape.size())) {
        continue;
      }
      reduction->aggregate = Aggregate::kMean;
      reduction->result = node.outputs[0];
      mean_of[static_cast<std::int32_t>(n)] = sum.producer.value;
    }
    for (const auto& [division, sum] : mean_of) move(sum, division);
  }

  // unsqueeze(clamp(count of edges, 1)), to a tensor of `rank` dimensions.
  bool is_edge_count(TensorId id, std::size_t rank) {
    const Node* column = matcher_.producer(id);
    if (column == nullptr || column->op_type != "aten.unsqueeze.default" ||
        graph_.tensor(id).shape.size() != rank) {
      return false;
    }
    const Node* clamp = matcher_.producer(column->inputs[0]);
    if (clamp == nullptr || clamp->op_type != "aten.clamp.default" || clamp->inputs.size() != 1) {
      return false;
    }
    const Json* least = find_member(clamp->attrs(), "min");
    const Json* most = find_member(clamp->attrs(), "max");
    const Reduction* count = reduction_of_result(clamp->inputs[0]);
    return count != nullptr && !count->rows.valid() && least != nullptr && least->is_number() &&
           least->get<double>() == 1 && (most == nullptr || most->is_null());
  }

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
      Reduction& reduction = *reduction_at(node);
      while (!reduction.relu && graph_.tensor(reduction.result).dtype == DType::kFloat32 &&
             absorb_reader(reduction)) {
      }
      const std::int32_t last = graph_.tensor(reduction.result).producer.value;
      if (last != node) move(node, last);
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
    if (reader->op_type == "aten.relu.default") {
      reduction.relu = true;
    } else if (reader->op_type == "aten.add.Tensor") {
      if (!absorb_addition(*reader, reduction)) return false;
    } else if (reader->op_type == "aten._to_copy.default") {
      if (graph_.tensor(reader->outputs[0]).dtype != DType::kBFloat16) return false;
    } else if (reader->op_type != "aten.alias.default") {
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
    const GnnMatcher::Columns columns = matcher_.columns_of(other);
    reduction.addend = matcher_.through_first_rows(columns.tensor);
    reduction.addend_column = columns.first;
    reduction.addend_stride = columns.stride;
    // Nothing else uses the memory of a matrix product's result.
    const std::string& op = graph_.node(info.producer).op_type;
    reduction.overwrites =
        columns.tensor == other && info.dtype == DType::kFloat32 &&
        matcher_.only_reader(other) != nullptr &&
        (op == "aten.linear.default" || op == "aten.mm.default" || op == "aten.addmm.default");
    return true;
  }

  // The node's own row times a factor: a self loop. Only before anything else is added.
  bool absorb_own_rows(TensorId addend, Reduction& reduction) const {
    const Node* product = matcher_.producer(addend);
    if (product->op_type != "aten.mul.Tensor" || product->inputs.size() != 2 ||
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
      const GnnMatcher::Columns columns = matcher_.columns_of(product->inputs[1 - side]);
      reduction.own = matcher_.through_first_rows(columns.tensor);
      reduction.own_column = columns.first;
      reduction.own_stride = columns.stride;
      return true;
    }
    return false;
  }

  const Graph& graph_;
  const GnnMatcher matcher_;
  std::int64_t edges_;
  const std::map<std::string, Tensor>& weights_;
  OwnKernels found_;
};

}  // namespace

OwnKernels find_sums(const Graph& graph, std::int64_t edges) {
  const std::map<std::string, Tensor> none;
  return ReductionFinder(graph, edges, none).sums();
}

OwnKernels find_reductions(const Graph& graph, std::int64_t edges,
                           const std::map<std::string, Tensor>& weights) {
  return ReductionFinder(graph, edges, weights).find();
}

}  // namespace npu::gnn
