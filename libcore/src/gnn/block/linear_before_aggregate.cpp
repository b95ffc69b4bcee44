// SPDX-License-Identifier: Apache-2.0
// linear(aggregate(x[source])) = aggregate(linear(x)[source]) + bias: if the linear layer
// has fewer output columns than input columns, its results are cheaper to gather than its operands.
//
// What lies between is linear in the rows of x, each step read by the next one alone: a gather, a
// factor per edge or per node, index_add, a division by the number of edges, and the addition of
// x's own rows, as for a self loop. Moving costs the products of halo rows, which otherwise are
// only gathered, against the columns that edges no longer read and the sums that are neither stored
// nor read again. Another layer of the same rows, neither with a bias, becomes one product with it.
// O(nodes of the block) for each layer that is moved.
#include "gnn/block/linear_before_aggregate.hpp"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "gnn/block/block_editor.hpp"
#include "gnn/model/aggregations.hpp"
#include "support/json_fields.hpp"

namespace npu::gnn {
namespace {

/// Operations of a matrix product that take the time of one byte from memory, on CPUs of today.
constexpr double kOperationsPerByte = 10.0;

struct LayerMove {
  NodeId linear;
  TensorId rows;                ///< the tensor x
  std::set<NodeId> readers;     ///< of rows of x, which will read their products
  std::set<NodeId> zeros;       ///< that sums are added to
  std::set<TensorId> narrowed;  ///< tensors that get the linear layer's columns
};

class Finder {
 public:
  Finder(const Graph& graph, const BlockShape& shape)
      : graph_(graph), matcher_(graph), shape_(shape) {}

  /// What lies in front of this node; nothing if the node stays where it is.
  std::optional<LayerMove> find(NodeId id) const {
    const Node& linear = graph_.node(id);
    if (fusion_role(linear.op_type) != FusionRole::kLinear) return std::nullopt;
    const TensorInfo& weight = graph_.tensor(linear.inputs[1]);
    if (weight.kind != TensorKind::kWeight || weight.shape.size() != 2) return std::nullopt;
    LayerMove move{id, rows_behind(linear.inputs[0]), {}, {}, {}};
    if (!move.rows.valid()) return std::nullopt;
    const TensorInfo& x = graph_.tensor(move.rows);
    const bool fits =
        x.shape.size() == 2 && x.dtype == DType::kFloat32 && x.shape[1] == weight.shape[1];
    if (!fits || !is_linear(linear.inputs[0], move) || !is_worth_it(x.shape, weight.shape[0])) {
      return std::nullopt;
    }
    return move;
  }

  /// Whether a tensor has the owned rows of another one.
  bool is_owned_slice(TensorId id, TensorId rows) const {
    const Node* slice = matcher_.producer(id, FusionRole::kSlice);
    return slice != nullptr && slice->inputs[0] == rows &&
           slice->attrs() == Json{{"dim", 0}, {"start", 0}, {"end", shape_.owned}};
  }

 private:
  /// What the gather reads that a tensor is made from; invalid if there is none.
  TensorId rows_behind(TensorId id) const {
    const Node* node = matcher_.producer(id);
    if (node == nullptr) return {};
    if (const TensorId x = matcher_.gathered_by(*node, EdgeEnd::kSource); x.valid()) return x;
    for (std::size_t i = is_sum(*node) ? 2 : 0; i < node->inputs.size(); ++i) {
      if (graph_.tensor(node->inputs[i]).shape.size() != 2) continue;
      if (const TensorId x = rows_behind(node->inputs[i]); x.valid()) return x;
    }
    return {};
  }

  bool is_sum(const Node& node) const { return matcher_.aggregate_of(node) == Aggregate::kSum; }

  /// Whether a tensor that nothing else reads is linear in each row of `move.rows`.
  bool is_linear(TensorId id, LayerMove& move) const {
    const Node* node = matcher_.producer(id);
    if (node == nullptr || matcher_.only_reader(id) == nullptr ||
        graph_.tensor(id).shape.size() != 2 || node->outputs.size() != 1) {
      return false;
    }
    move.narrowed.insert(id);
    const NodeId at = graph_.tensor(id).producer;
    if (matcher_.gathered_by(*node, EdgeEnd::kSource) == move.rows) {
      move.readers.insert(at);
      return true;
    }
    if (matcher_.is_alias(*node)) return goes_on(at, 0, move);
    const std::size_t count = node->inputs.size();
    switch (fusion_role(node->op_type)) {
      case FusionRole::kDiv:
        return count == 2 && is_column(node->inputs[1]) &&
               find_member(node->attrs(), "rounding_mode") == nullptr && goes_on(at, 0, move);
      case FusionRole::kMul: {
        if (count != 2) return false;
        const std::size_t side = is_column(node->inputs[1]) ? 0 : 1;
        return is_column(node->inputs[1 - side]) && goes_on(at, side, move);
      }
      case FusionRole::kAdd: {
        const Shape& shape = graph_.tensor(id).shape;
        return count == 2 && find_member(node->attrs(), "alpha") == nullptr &&
               graph_.tensor(node->inputs[0]).shape == shape &&
               graph_.tensor(node->inputs[1]).shape == shape && goes_on(at, 0, move) &&
               goes_on(at, 1, move);
      }
      default:
        break;
    }
    if (!is_sum(*node) || matcher_.only_reader(node->inputs[0]) == nullptr) return false;
    move.zeros.insert(graph_.tensor(node->inputs[0]).producer);
    move.narrowed.insert(node->inputs[0]);
    return goes_on(at, 2, move);
  }

  /// The same for an operand of a node, which may be the rows themselves, or the owned ones.
  bool goes_on(NodeId node, std::size_t input, LayerMove& move) const {
    const TensorId id = graph_.node(node).inputs[input];
    if (id != move.rows && !is_owned_slice(id, move.rows)) return is_linear(id, move);
    move.readers.insert(node);
    return true;
  }

  bool is_column(TensorId id) const {
    const TensorInfo& tensor = graph_.tensor(id);
    return tensor.shape.size() == 2 && tensor.shape[1] == 1;
  }

  bool is_worth_it(const Shape& x, std::int64_t columns) const {
    const auto width = static_cast<double>(x[1]);
    const auto narrow = static_cast<double>(columns);
    const auto halo = static_cast<double>(x[0] - shape_.owned);
    const double saved =
        sizeof(float) * (static_cast<double>(shape_.edges) * (width - narrow) +
                         static_cast<double>(shape_.owned) * (2.0 * width - 2.0 * narrow));
    // Halo rows are multiplied as well, and the rows of a part are gathered for that.
    const double collected = halo > 0 ? 2.0 * static_cast<double>(x[0]) * sizeof(float) * width : 0;
    const double added = halo * 2.0 * width * narrow / kOperationsPerByte;
    return saved >= collected + added;
  }

  const Graph& graph_;
  EdgeMatcher matcher_;
  const BlockShape& shape_;
};

class Mover {
 public:
  Mover(Graph& graph, const LayerMove& move, const BlockShape& shape)
      : graph_(graph), move_(move), shape_(shape), finder_(graph, shape), editor_(graph) {}

  /// The name of the product that the layer becomes.
  std::string apply() {
    const Node& linear = graph_.node(move_.linear);
    const Wire& x = editor_.wire(move_.rows);
    const Wire& weight = editor_.wire(linear.inputs[1]);
    const std::int64_t columns = weight.shape[0];
    const NodeId first = *move_.readers.begin();
    const std::string name = linear.name + "@before";
    product_ = {name, {x.shape[0], columns}};
    owned_ = {name + "_rows", {shape_.owned, columns}};
    NewNode product{linear.op_type, {x, weight}, product_, linear.attrs()};
    if (!join_partner(first, product)) editor_.insert_before(first, product);
    bool reads_owned = false;
    for (const NodeId reader : move_.readers) reads_owned = redirect(reader) || reads_owned;
    if (reads_owned) {
      editor_.insert_before(first, slice_node(product_, owned_, 0, 0, shape_.owned));
    }
    for (const NodeId zeros : move_.zeros) editor_.attrs(zeros)["size"][1] = columns;
    for (const TensorId id : move_.narrowed) editor_.wire(id).shape[1] = columns;
    NewNode rest{"aten.alias.default",
                 {editor_.wire(linear.inputs[0])},
                 editor_.wire(linear.outputs[0]),
                 Json::object(),
                 linear.name};
    if (linear.inputs.size() > 2) {
      rest.op_type = "aten.add.Tensor";
      rest.inputs.push_back(editor_.wire(linear.inputs[2]));
    }
    editor_.replace(move_.linear, rest);
    editor_.commit();
    return name;
  }

 private:
  /// Makes a reader of rows one of their products; true if it reads those of owned rows.
  bool redirect(NodeId reader) {
    bool reads_owned = false;
    const Node& node = graph_.node(reader);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_owned = finder_.is_owned_slice(node.inputs[i], move_.rows);
      if (node.inputs[i] == move_.rows || is_owned) {
        editor_.read(reader, i, is_owned ? owned_ : product_);
      }
      reads_owned = reads_owned || is_owned;
    }
    return reads_owned;
  }

  /// A linear layer without a bias that reads what the moved one reads, or its owned rows; invalid
  /// if there is none.
  NodeId find_partner() const {
    const Shape& x = graph_.tensor(move_.rows).shape;
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const Node& node = graph_.node(id);
      if (fusion_role(node.op_type) != FusionRole::kLinear || id == move_.linear ||
          node.inputs.size() != 2) {
        continue;
      }
      if (node.inputs[0] == move_.rows) return id;
      // Halo rows are multiplied for nothing; owned rows are not read from memory a second time.
      const auto halo = static_cast<double>(x[0] - shape_.owned);
      const auto columns = static_cast<double>(graph_.tensor(node.outputs[0]).shape[1]);
      if (finder_.is_owned_slice(node.inputs[0], move_.rows) &&
          halo * 2.0 * columns <
              kOperationsPerByte * sizeof(float) * static_cast<double>(shape_.owned)) {
        return id;
      }
    }
    return {};
  }

  /// The moved layer and a partner become one product with the weights below each other, of which
  /// each result is a run of columns: its operand, the largest tensor, is read once. False if there
  /// is no partner.
  bool join_partner(NodeId first, const NewNode& product) {
    const NodeId id = find_partner();
    if (!id.valid()) return false;
    const Node& partner = graph_.node(id);
    const std::int64_t boundary = product_.shape[1];
    const Wire& second = editor_.wire(partner.inputs[1]);
    const std::int64_t total = boundary + graph_.tensor(partner.outputs[0]).shape[1];
    Wire weights{product_.name + "@weights", product.inputs[1].shape};
    weights.shape[0] = total;
    const Wire both{product_.name + "@both", {product_.shape[0], total}};
    editor_.insert_before(first,
                          {"aten.cat.default", {product.inputs[1], second}, weights, {{"dim", 0}}});
    editor_.insert_before(first, {"aten.linear.default", {product.inputs[0], weights}, both});
    editor_.insert_before(first, slice_node(both, product_, 1, 0, boundary));
    Wire rows = both;
    if (partner.inputs[0] != move_.rows) {
      rows = {product_.name + "@rows", {shape_.owned, total}};
      editor_.insert_before(first, slice_node(both, rows, 0, 0, shape_.owned));
    }
    NewNode slice = slice_node(rows, editor_.wire(partner.outputs[0]), 1, boundary, total);
    slice.name = partner.name;
    editor_.remove(id);
    editor_.insert_before(first, slice);
    return true;
  }

  const Graph& graph_;
  const LayerMove& move_;
  const BlockShape& shape_;
  Finder finder_;
  BlockEditor editor_;
  Wire product_;
  Wire owned_;  ///< rows of it
};

}  // namespace

bool linear_before_aggregate(Graph& block, const BlockShape& shape) {
  std::set<std::string> moved;
  const auto move_one = [&] {
    const Finder finder(block, shape);
    for (const NodeId id : ids_of<NodeId>(block.nodes())) {
      const std::string name = block.node(id).name;
      const std::optional<LayerMove> move = moved.contains(name) ? std::nullopt : finder.find(id);
      if (!move) continue;
      moved.insert(name);
      moved.insert(Mover(block, *move, shape).apply());
      return true;
    }
    return false;
  };
  while (move_one()) {
  }
  return !moved.empty();
}

}  // namespace npu::gnn
