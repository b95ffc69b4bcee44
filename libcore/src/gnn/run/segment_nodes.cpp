// SPDX-License-Identifier: Apache-2.0
// Writes the sums over edges of a block as segment reductions, and the ends of the edges as inputs
// of their own, so that the program of a block depends on no edge: O(nodes).
#include "gnn/run/segment_nodes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gnn/run/find_reductions.hpp"
#include "gnn/run/gnn_matcher.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

class SegmentRewriter {
 public:
  SegmentRewriter(const Json& block, const BlockShape& shape, const std::string& file)
      : block_(block),
        shape_(shape),
        graph_(read_valid_graph(block.dump(), file)),
        matcher_(graph_),
        sums_(find_sums(graph_, shape.edges)),
        offsets_(input(kOffsetInput, shape.owned + 1, "int64")),
        ends_{input(kSourceInput, shape.edges, "int32"),
              input(kTargetInput, shape.edges, "int32")} {}

  Json rewrite() {
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) describe(graph_.nodes()[n]);
    Json nodes = Json::array();
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      rewrite_node(block_["nodes"][n], static_cast<std::int32_t>(n), nodes);
    }
    block_["nodes"] = std::move(nodes);
    write_inputs();
    return std::move(block_);
  }

 private:
  static Json input(std::string_view name, std::int64_t count, const char* dtype) {
    return {{"name", std::string(name)}, {"shape", Json::array({count})}, {"dtype", dtype}};
  }

  /// How the document writes the node's tensors where they are read.
  void describe(const Node& node) {
    const Json& json = block_["nodes"][index_of(graph_.tensor(node.outputs[0]).producer)];
    for (const Json& output : json["outputs"]) tensors_[output["name"].get<std::string>()] = output;
    for (const Json& operand : json["inputs"]) {
      tensors_.emplace(operand["name"].get<std::string>(), operand);
    }
  }

  Json tensor(TensorId id) const {
    for (const std::int64_t which : {0, 1}) {
      if (matcher_.is_end(id, which)) return ends_[index_of(which)];
    }
    return tensors_.at(graph_.tensor(id).name);
  }

  bool is_output(TensorId id) const {
    const auto& outputs = graph_.graph_outputs();
    return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
  }

  /// Adds what stands for a node; nothing for one that is an input now.
  void rewrite_node(Json node, std::int32_t n, Json& nodes) const {
    const Node& known = graph_.nodes()[index_of(n)];
    const auto found = sums_.find(n);
    if (found != sums_.end()) {
      if (const auto* sum = std::get_if<Reduction>(&found->second)) {
        return add_segment(segment(node, *sum), nodes);
      }
    }
    const TensorId result = known.outputs[0];
    const bool is_end = matcher_.is_end(result, 0) || matcher_.is_end(result, 1);
    if (is_end && !is_output(result)) return;
    if (is_end) return nodes.push_back(std::move(node));
    for (std::size_t i = 0; i < known.inputs.size(); ++i) {
      node["inputs"][i] = tensor(known.inputs[i]);
    }
    nodes.push_back(std::move(node));
  }

  /// A sum may have rows for the halo, too, where no edge ends: zeros.
  void add_segment(Json node, Json& nodes) const {
    const Json whole = node["outputs"][0];
    const std::int64_t missing = whole["shape"][0].get<std::int64_t>() - shape_.owned;
    if (missing > 0) {
      const std::string name = node["name"];
      node["name"] = node["outputs"][0]["name"] = name + "@rows";
      node["outputs"][0]["shape"][0] = shape_.owned;
      std::vector<std::int64_t> pad(2 * whole["shape"].size(), 0);
      pad.back() = missing;  // behind the first dimension
      const Json rows = node["outputs"][0];
      nodes.push_back(std::move(node));
      node = {{"name", name},
              {"op_type", "aten.constant_pad_nd.default"},
              {"inputs", Json::array({rows})},
              {"outputs", Json::array({whole})},
              {"attrs", {{"pad", pad}, {"value", 0.0}}}};
    }
    nodes.push_back(std::move(node));
  }

  Json segment(const Json& node, const Reduction& sum) const {
    const Node& maker = graph_.node(graph_.tensor(sum.sum).producer);
    Json inputs = Json::array();
    const char* form = name_of(sum.aggregate);
    if (sum.gathered.valid()) {
      inputs = Json::array({tensor(sum.gathered), offsets_, ends_[0]});
      const bool may_be_softmax = sum.aggregate == Aggregate::kSum;
      if (const auto scores = may_be_softmax ? scores_of(sum.factor) : std::nullopt) {
        form = "softmax";
        inputs.push_back(tensor(*scores));
      } else if (sum.factor.valid()) {
        inputs.push_back(tensor(sum.factor));
      }
    } else {
      inputs = Json::array({tensor(maker.inputs[2]), offsets_});
    }
    Json result = node;
    result["op_type"] = std::string(kSegmentReduce);
    result["inputs"] = std::move(inputs);
    result["attrs"] = {{"reduce", form}};
    return result;
  }

  static const char* name_of(Aggregate aggregate) {
    if (aggregate == Aggregate::kMean) return "mean";
    return aggregate == Aggregate::kSum ? "sum" : "amax";
  }

  /// What factors by edge are the softmax of, over the edges of a target: exp(scores) over their
  /// sum, where the scores may be shifted by their largest.
  std::optional<TensorId> scores_of(TensorId factor) const {
    const Node* quotient = factor.valid() ? matcher_.producer(factor) : nullptr;
    while (quotient != nullptr && (quotient->op_type == "aten.unsqueeze.default" ||
                                   quotient->op_type == "aten.alias.default")) {
      quotient = matcher_.producer(quotient->inputs[0]);
    }
    if (quotient == nullptr || quotient->op_type != "aten.div.Tensor" ||
        quotient->inputs.size() != 2 ||
        find_member(quotient->attrs(), "rounding_mode") != nullptr) {
      return std::nullopt;
    }
    const TensorId power = matcher_.through_alias(quotient->inputs[0]);
    const Node* exponential = matcher_.producer(power);
    const Node* by_edge = matcher_.producer(quotient->inputs[1]);
    if (exponential == nullptr || exponential->op_type != "aten.exp.default" ||
        by_edge == nullptr || !is_by_target(*by_edge)) {
      return std::nullopt;
    }
    const Node* total = matcher_.producer(by_edge->inputs[0]);
    if (total == nullptr || !matcher_.is_sum_by_target(*total) ||
        matcher_.through_alias(total->inputs[2]) != power) {
      return std::nullopt;
    }
    return unshifted(exponential->inputs[0]);
  }

  /// scores of scores - largest(scores)[target], which the node does itself; else the tensor.
  TensorId unshifted(TensorId id) const {
    const Node* difference = matcher_.producer(id);
    if (difference == nullptr || difference->op_type != "aten.sub.Tensor" ||
        difference->inputs.size() != 2 || find_member(difference->attrs(), "alpha") != nullptr) {
      return id;
    }
    const Node* by_edge = matcher_.producer(difference->inputs[1]);
    if (by_edge == nullptr || !is_by_target(*by_edge)) return id;
    const Node* largest = matcher_.producer(by_edge->inputs[0]);
    const TensorId scores = matcher_.through_alias(difference->inputs[0]);
    const bool is_shift = largest != nullptr && matcher_.is_largest_by_target(*largest) &&
                          matcher_.through_alias(largest->inputs[2]) == scores;
    return is_shift ? scores : id;
  }

  /// values[target]
  bool is_by_target(const Node& node) const {
    const Json* dim = find_member(node.attrs(), "dim");
    return node.op_type == "aten.index_select.default" && node.inputs.size() == 2 &&
           dim != nullptr && *dim == 0 && matcher_.is_end(node.inputs[1], 1);
  }

  /// Those that nodes read.
  void write_inputs() {
    std::map<std::string, Json> added;
    for (const Json& each : {offsets_, ends_[0], ends_[1]}) {
      added[each["name"].get<std::string>()] = each;
    }
    std::set<std::string> read;
    for (const Json& node : block_["nodes"]) {
      for (const Json& operand : node["inputs"]) read.insert(operand["name"].get<std::string>());
    }
    const std::string both_ends(kEdgeInput);
    Json inputs = Json::array();
    for (const Json& each : block_["graph_inputs"]) {
      if (each["name"] != both_ends || read.contains(both_ends)) inputs.push_back(each);
    }
    for (const auto& [name, each] : added) {
      if (read.contains(name)) inputs.push_back(each);
    }
    block_["graph_inputs"] = std::move(inputs);
  }

  Json block_;
  BlockShape shape_;
  Graph graph_;
  GnnMatcher matcher_;
  OwnKernels sums_;
  Json offsets_;
  Json ends_[2];
  std::map<std::string, Json> tensors_;  ///< by name
};

}  // namespace

Json with_segment_nodes(const Json& block, const BlockShape& shape, const std::string& file) {
  return SegmentRewriter(block, shape, file).rewrite();
}

}  // namespace npu::gnn
