// SPDX-License-Identifier: Apache-2.0
// linear(aggregate(x[source])) = aggregate(linear(x)[source]) + bias: if the linear layer
// has fewer output columns than input columns, its results are cheaper to gather than its operands.
//
// What lies between is linear in the rows of x, each step read by the next one alone: a gather, a
// factor per edge or per node, index_add, a division by the number of edges, and the addition of
// x's own rows, as for a self loop. Moving costs the products of halo rows, which otherwise are
// only gathered, against the columns that edges no longer read and the sums that are neither stored
// nor read again. O(nodes of the block) for each layer that is moved.
#include "gnn/run/linear_before_aggregate.hpp"

#include <algorithm>
#include <set>

#include "gnn/run/gnn_matcher.hpp"
#include "npu/ir/json_reader.hpp"

namespace npu::gnn {
namespace {

/// Operations of a matrix product that take the time of one byte from memory, on CPUs of today.
constexpr double kOperationsPerByte = 10.0;

struct LayerMove {
  std::string linear;  ///< names of nodes
  std::string rows;    ///< the tensor x
  std::set<std::string> zeros;
  std::set<std::string> readers;   ///< of all rows of x, which will read their products
  std::set<std::string> narrowed;  ///< tensors that get the linear layer's columns
  std::int64_t columns = 0;
  std::int64_t count = 0;  ///< of rows
};

class Finder {
 public:
  Finder(const Graph& graph, const BlockShape& shape)
      : graph_(graph), matcher_(graph), shape_(shape) {}

  /// What lies in front of this node; false if the node stays where it is.
  bool find(const Node& linear, LayerMove& move) const {
    if (linear.op_type != "aten.linear.default" || linear.inputs.size() < 2) return false;
    const TensorInfo& weight = graph_.tensor(linear.inputs[1]);
    if (weight.kind != TensorKind::kWeight || weight.shape.size() != 2) return false;
    move.linear = linear.name;
    move.columns = weight.shape[0];
    const TensorId rows = rows_behind(linear.inputs[0]);
    if (!rows.valid()) return false;
    const TensorInfo& x = graph_.tensor(rows);
    if (x.shape.size() != 2 || x.dtype != DType::kFloat32 || x.shape[1] != weight.shape[1]) {
      return false;
    }
    move.rows = x.name;
    move.count = x.shape[0];
    return is_linear(linear.inputs[0], rows, move) && is_worth_it(x.shape, move.columns);
  }

 private:
  /// What the gather reads that a tensor is made from; invalid if there is none.
  TensorId rows_behind(TensorId id) const {
    const Node* node = matcher_.producer(id);
    if (node == nullptr) return {};
    if (const TensorId x = matcher_.gathered_from(id); x.valid()) return x;
    const bool is_sum = matcher_.is_sum_by_target(*node);
    for (std::size_t i = is_sum ? 2 : 0; i < node->inputs.size(); ++i) {
      if (graph_.tensor(node->inputs[i]).shape.size() != 2) continue;
      if (const TensorId x = rows_behind(node->inputs[i]); x.valid()) return x;
    }
    return {};
  }

  /// Whether a tensor that nothing else reads is linear in each row of `rows`.
  bool is_linear(TensorId id, TensorId rows, LayerMove& move) const {
    const Node* node = matcher_.producer(id);
    if (node == nullptr || matcher_.only_reader(id) == nullptr ||
        graph_.tensor(id).shape.size() != 2 || node->outputs.size() != 1) {
      return false;
    }
    move.narrowed.insert(graph_.tensor(id).name);
    const std::string& op = node->op_type;
    if (matcher_.gathered_from(id) == rows) {
      move.readers.insert(node->name);
      return true;
    }
    if (op == "aten.alias.default") return goes_on(*node, 0, rows, move);
    if (op == "aten.div.Tensor") {
      return node->inputs.size() == 2 && is_column(node->inputs[1]) &&
             find_member(node->attrs(), "rounding_mode") == nullptr &&
             goes_on(*node, 0, rows, move);
    }
    if (op == "aten.mul.Tensor" && node->inputs.size() == 2) {
      const std::size_t side = is_column(node->inputs[1]) ? 0 : 1;
      return is_column(node->inputs[1 - side]) && goes_on(*node, side, rows, move);
    }
    if (op == "aten.add.Tensor" && node->inputs.size() == 2 &&
        find_member(node->attrs(), "alpha") == nullptr) {
      const Shape& shape = graph_.tensor(id).shape;
      return graph_.tensor(node->inputs[0]).shape == shape &&
             graph_.tensor(node->inputs[1]).shape == shape && goes_on(*node, 0, rows, move) &&
             goes_on(*node, 1, rows, move);
    }
    if (!matcher_.is_sum_by_target(*node) || matcher_.only_reader(node->inputs[0]) == nullptr) {
      return false;
    }
    move.zeros.insert(matcher_.producer(node->inputs[0])->name);
    move.narrowed.insert(graph_.tensor(node->inputs[0]).name);
    return goes_on(*node, 2, rows, move);
  }

  /// The same for an operand of a node, which may be the rows themselves, or the owned ones.
  bool goes_on(const Node& node, std::size_t input, TensorId rows, LayerMove& move) const {
    const TensorId id = node.inputs[input];
    const Node* producer = matcher_.producer(id);
    const bool is_owned = producer != nullptr && producer->op_type == "aten.slice.Tensor" &&
                          producer->inputs[0] == rows && producer->name.ends_with("@owned");
    if (id != rows && !is_owned) return is_linear(id, rows, move);
    move.readers.insert(node.name);
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
  GnnMatcher matcher_;
  BlockShape shape_;
};

/// Removes a node whose result nothing reads.
void remove_unread(Json& block, const Json& name) {
  Json kept = Json::array();
  bool is_read = false;
  for (const Json& node : block["nodes"]) {
    for (const Json& input : node["inputs"]) is_read = is_read || input["name"] == name;
  }
  for (const Json& node : block["nodes"]) {
    if (is_read || node["name"] != name) kept.push_back(node);
  }
  block["nodes"] = std::move(kept);
}

/// The linear layer on the rows themselves.
Json product_of(const Json& block, const LayerMove& move) {
  Json product;
  Json rows;
  for (const Json& node : block["nodes"]) {
    if (node["name"] == move.linear) product = node;
    for (const Json& input : node["inputs"]) {
      if (input["name"] == move.rows) rows = input;
    }
  }
  product["name"] = product["outputs"][0]["name"] = move.linear + "@before";
  product["outputs"][0]["shape"] = {move.count, move.columns};
  product["inputs"][0] = rows;
  if (product["inputs"].size() > 2) product["inputs"].erase(2);
  return product;
}

/// Its owned rows.
Json owned_rows_of(const Json& product, std::int64_t owned) {
  Json rows = product["outputs"][0];
  rows["name"] = product["name"].get<std::string>() + "_rows";
  rows["shape"][0] = owned;
  return {{"name", rows["name"]},
          {"op_type", "aten.slice.Tensor"},
          {"inputs", Json::array({product["outputs"][0]})},
          {"outputs", Json::array({rows})},
          {"attrs", {{"dim", 0}, {"start", 0}, {"end", owned}}}};
}

/// What lies between the product and the linear layer, on fewer columns.
void narrow(Json& node, const LayerMove& move) {
  if (move.zeros.contains(node["name"].get<std::string>())) node["attrs"]["size"][1] = move.columns;
  for (const char* side : {"inputs", "outputs"}) {
    for (Json& tensor : node[side]) {
      if (move.narrowed.contains(tensor["name"].get<std::string>())) {
        tensor["shape"][1] = move.columns;
      }
    }
  }
}

void move_layer(Json& block, const LayerMove& move, const BlockShape& shape) {
  const Json product = product_of(block, move);
  const Json owned = owned_rows_of(product, shape.owned);
  Json nodes = Json::array();
  bool is_first = true;
  for (Json node : block["nodes"]) {
    if (move.readers.contains(node["name"].get<std::string>())) {
      if (is_first) {
        nodes.push_back(product);
        nodes.push_back(owned);
      }
      is_first = false;
      for (Json& input : node["inputs"]) {
        if (input["name"] == move.rows) input = product["outputs"][0];
        if (input["name"] == move.rows + "@owned") input = owned["outputs"][0];
      }
    }
    narrow(node, move);
    if (node["name"] == move.linear) {
      const bool has_bias = node["inputs"].size() > 2;
      node["op_type"] = has_bias ? "aten.add.Tensor" : "aten.alias.default";
      node["inputs"].erase(1);
      node["attrs"] = Json::object();
    }
    nodes.push_back(std::move(node));
  }
  block["nodes"] = std::move(nodes);
  remove_unread(block, owned["name"]);
}

const Json* node_named(const Json& block, const std::string& name) {
  for (const Json& node : block["nodes"]) {
    if (node["name"] == name) return &node;
  }
  return nullptr;
}

std::int64_t columns_of(const Json& linear) {
  return linear["outputs"][0]["shape"][1].get<std::int64_t>();
}

/// A linear layer without a bias that reads what `first` reads, or its owned rows; null if there is
/// none. `owned` gets the slice that makes those rows, or null.
Json partner_of(const Json& block, const Json& first, const BlockShape& shape, Json& owned) {
  const Json& operand = first["inputs"][0];
  for (const Json& node : block["nodes"]) {
    if (node["op_type"] != "aten.linear.default" || node["name"] == first["name"] ||
        node["inputs"].size() != 2) {
      continue;
    }
    owned = nullptr;
    if (node["inputs"][0]["name"] == operand["name"]) {
      if (node["inputs"][0]["shape"] == operand["shape"]) return node;
      continue;
    }
    for (const Json& slice : block["nodes"]) {
      if (slice["op_type"] == "aten.slice.Tensor" &&
          slice["outputs"][0]["name"] == node["inputs"][0]["name"] &&
          slice["inputs"][0]["name"] == operand["name"] &&
          slice["attrs"] == Json{{"dim", 0}, {"start", 0}, {"end", shape.owned}}) {
        owned = slice;
      }
    }
    // Halo rows are multiplied for nothing; owned rows are not read from memory a second time.
    const auto halo = static_cast<double>(operand["shape"][0].get<std::int64_t>() - shape.owned);
    if (!owned.is_null() &&
        halo * 2.0 * static_cast<double>(columns_of(node)) <
            kOperationsPerByte * sizeof(float) * static_cast<double>(shape.owned)) {
      return node;
    }
  }
  return nullptr;
}

/// A layer that was moved and another one of the same operand, neither with a bias, become one
/// product with the weights below each other, of which each result is a run of columns: its
/// operand, the largest tensor, is read once.
void join_layers(Json& block, const std::string& moved, const BlockShape& shape) {
  const Json first = *node_named(block, moved);
  Json owned;
  const Json second = partner_of(block, first, shape, owned);
  if (second.is_null()) return;
  const std::int64_t boundary = columns_of(first);
  const std::int64_t total = boundary + columns_of(second);
  Json weights = first["inputs"][1];
  weights["name"] = moved + "@weights";
  weights["shape"][0] = total;
  Json both = first["outputs"][0];
  both["name"] = moved + "@both";
  both["shape"][1] = total;
  const auto slice = [](const std::string& name, const Json& input, const Json& output,
                        std::int64_t dim, std::int64_t start, std::int64_t end) -> Json {
    return {{"name", name},
            {"op_type", "aten.slice.Tensor"},
            {"inputs", Json::array({input})},
            {"outputs", Json::array({output})},
            {"attrs", {{"dim", dim}, {"start", start}, {"end", end}}}};
  };
  Json nodes = Json::array();
  for (const Json& node : block["nodes"]) {
    if (node["name"] == second["name"]) continue;
    if (node["name"] != moved) {
      nodes.push_back(node);
      continue;
    }
    nodes.push_back({{"name", weights["name"]},
                     {"op_type", "aten.cat.default"},
                     {"inputs", Json::array({first["inputs"][1], second["inputs"][1]})},
                     {"outputs", Json::array({weights})},
                     {"attrs", {{"dim", 0}}}});
    nodes.push_back({{"name", both["name"]},
                     {"op_type", "aten.linear.default"},
                     {"inputs", Json::array({first["inputs"][0], weights})},
                     {"outputs", Json::array({both})},
                     {"attrs", Json::object()}});
    nodes.push_back(slice(first["name"], both, first["outputs"][0], 1, 0, boundary));
    Json rows = both;
    if (!owned.is_null()) {
      rows["name"] = moved + "@rows";
      rows["shape"][0] = shape.owned;
      nodes.push_back(slice(rows["name"], both, rows, 0, 0, shape.owned));
    }
    nodes.push_back(slice(second["name"], rows, second["outputs"][0], 1, boundary, total));
  }
  block["nodes"] = std::move(nodes);
}

}  // namespace

Json linear_before_aggregate(const Json& block, const BlockShape& shape, const std::string& file) {
  const auto& nodes = block["nodes"];
  const auto has = [&](const char* op) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const Json& node) { return node["op_type"] == op; });
  };
  if (!has("aten.index_add.default") || !has("aten.linear.default")) return block;
  Json result = block;
  std::set<std::string> moved;
  for (;;) {
    const Graph graph = read_valid_graph(result.dump(), file);
    const Finder finder(graph, shape);
    bool found = false;
    for (const Node& node : graph.nodes()) {
      LayerMove move;
      if (moved.contains(node.name) || !finder.find(node, move)) continue;
      moved.insert(node.name);
      moved.insert(node.name + "@before");
      move_layer(result, move, shape);
      join_layers(result, move.linear + "@before", shape);
      found = true;
      break;
    }
    if (!found) return result;
  }
}

}  // namespace npu::gnn
