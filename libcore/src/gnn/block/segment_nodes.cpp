// SPDX-License-Identifier: Apache-2.0
// Writes the aggregations of a block as segment reductions, and the ends of the edges as inputs of
// their own, so that the program of a block depends on no edge: O(nodes).
#include "gnn/block/segment_nodes.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gnn/block/block_editor.hpp"
#include "gnn/model/aggregations.hpp"

namespace npu::gnn {
namespace {

// An input that is there only if something reads it.
struct EdgeInput {
  Wire wire;
  bool is_read = false;

  EdgeInput(std::string_view name, std::int64_t count, DType dtype)
      : wire{std::string(name), {count}, dtype} {}
  const Wire& read() {
    is_read = true;
    return wire;
  }
};

class SegmentRewriter {
 public:
  SegmentRewriter(Graph& graph, const BlockShape& shape)
      : graph_(graph),
        shape_(shape),
        matcher_(graph),
        editor_(graph),
        offsets_(kOffsetInput, shape.owned + 1, DType::kInt64),
        sources_(kSourceInput, shape.edges, DType::kInt32),
        targets_(kTargetInput, shape.edges, DType::kInt32) {}

  bool rewrite() {
    if (matcher_.edges() < 0) return false;
    const std::map<NodeId, Aggregation> aggregations = find_aggregations(graph_);
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const auto found = aggregations.find(id);
      if (found != aggregations.end()) {
        replace(id, found->second);
      } else {
        rewire(id);
      }
    }
    if (!reads_both_ends_) editor_.remove_input(graph_.find_tensor(kEdgeInput));
    for (EdgeInput* input : {&offsets_, &sources_, &targets_}) {
      if (input->is_read) editor_.add_input(input->wire);
    }
    editor_.commit();
    return true;
  }

 private:
  const Wire& wire(TensorId id) {
    if (matcher_.is_end(id, EdgeEnd::kSource)) return sources_.read();
    if (matcher_.is_end(id, EdgeEnd::kTarget)) return targets_.read();
    return editor_.wire(id);
  }

  // Operands that are inputs now; a node that gives one is left out.
  void rewire(NodeId id) {
    const Node& node = graph_.node(id);
    const TensorId result = node.outputs[0];
    if (matcher_.is_end(result, EdgeEnd::kSource) || matcher_.is_end(result, EdgeEnd::kTarget)) {
      const auto& outputs = graph_.graph_outputs();
      if (std::find(outputs.begin(), outputs.end(), result) == outputs.end()) {
        return editor_.remove(id);
      }
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      editor_.read(id, i, wire(node.inputs[i]));
      reads_both_ends_ = reads_both_ends_ || graph_.tensor(node.inputs[i]).name == kEdgeInput;
    }
  }

  // A sum may have rows for the halo, too, where no edge ends: zeros.
  void replace(NodeId id, const Aggregation& aggregation) {
    const Node& node = graph_.node(id);
    NewNode segment = segment_of(aggregation);
    segment.name = node.name;
    const Wire whole = segment.output;
    const std::int64_t missing = whole.shape[0] - shape_.owned;
    if (missing <= 0) return editor_.replace(id, segment);
    segment.name += "@rows";
    segment.output = {segment.name, whole.shape, whole.dtype};
    segment.output.shape[0] = shape_.owned;
    std::vector<std::int64_t> pad(2 * whole.shape.size(), 0);
    pad.back() = missing;  // behind the first dimension
    editor_.replace(id, segment);
    editor_.insert_before(id, {"aten.constant_pad_nd.default",
                               {segment.output},
                               whole,
                               {{"pad", pad}, {"value", 0.0}},
                               node.name});
  }

  NewNode segment_of(const Aggregation& aggregation) {
    NewNode segment{std::string(kSegmentReduce), {}, editor_.wire(aggregation.result)};
    const char* form = name_of(aggregation.aggregate);
    if (aggregation.gathers) {
      segment.inputs = {wire(aggregation.rows), offsets_.read(), sources_.read()};
      const bool may_be_softmax =
          aggregation.aggregate == Aggregate::kSum && aggregation.factor.valid();
      if (const auto scores = may_be_softmax ? scores_of(aggregation.factor) : std::nullopt) {
        form = "softmax";
        segment.inputs.push_back(wire(*scores));
      } else if (aggregation.factor.valid()) {
        segment.inputs.push_back(wire(aggregation.factor));
      }
    } else {
      const Node& maker = *matcher_.producer(aggregation.total);
      segment.inputs = {wire(maker.inputs[2]), offsets_.read()};
    }
    segment.attrs = {{"reduce", form}};
    return segment;
  }

  static const char* name_of(Aggregate aggregate) {
    if (aggregate == Aggregate::kMean) return "mean";
    return aggregate == Aggregate::kSum ? "sum" : "amax";
  }

  // What factors by edge are the softmax of, over the edges of a target: exp(scores) over their
  // sum, where the scores may be shifted by their largest.
  std::optional<TensorId> scores_of(TensorId factor) const {
    for (const Node* view = matcher_.view(factor); view != nullptr; view = matcher_.view(factor)) {
      factor = view->inputs[0];
    }
    const Node* quotient = matcher_.producer(factor, FusionRole::kDiv);
    if (quotient == nullptr || quotient->inputs.size() != 2 ||
        find_member(quotient->attrs(), "rounding_mode") != nullptr) {
      return std::nullopt;
    }
    const TensorId power = matcher_.through_alias(quotient->inputs[0]);
    const Node* exponential = matcher_.producer(power, FusionRole::kExp);
    if (exponential == nullptr || !is_over_targets(quotient->inputs[1], Aggregate::kSum, power)) {
      return std::nullopt;
    }
    return unshifted(exponential->inputs[0]);
  }

  // scores of scores - largest(scores)[target], which the node does itself; else the tensor.
  TensorId unshifted(TensorId id) const {
    const Node* difference = matcher_.producer(id, FusionRole::kSub);
    if (difference == nullptr || difference->inputs.size() != 2 ||
        find_member(difference->attrs(), "alpha") != nullptr) {
      return id;
    }
    const TensorId scores = matcher_.through_alias(difference->inputs[0]);
    return is_over_targets(difference->inputs[1], Aggregate::kLargest, scores) ? scores : id;
  }

  // aggregate(values)[target]
  bool is_over_targets(TensorId id, Aggregate aggregate, TensorId values) const {
    const TensorId total = matcher_.gathered_from(id, EdgeEnd::kTarget);
    const Node* maker = total.valid() ? matcher_.producer(total) : nullptr;
    return maker != nullptr && matcher_.aggregate_of(*maker) == aggregate &&
           matcher_.through_alias(maker->inputs[2]) == values;
  }

  Graph& graph_;
  const BlockShape& shape_;
  const EdgeMatcher matcher_;
  BlockEditor editor_;
  EdgeInput offsets_;
  EdgeInput sources_;
  EdgeInput targets_;
  bool reads_both_ends_ = false;
};

}  // namespace

bool segment_nodes(Graph& block, const BlockShape& shape) {
  return SegmentRewriter(block, shape).rewrite();
}

}  // namespace npu::gnn
