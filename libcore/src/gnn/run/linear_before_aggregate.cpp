// SPDX-License-Identifier: Apache-2.0
// linear(aggregate(x[source])) = aggregate(linear(x)[source]) + bias: if the linear layer
// has fewer output columns than input columns, its results are cheaper to gather than its operands.
//
// The chain is gather, an optional factor per edge, index_add, an optional division by the number
// of edges, linear; each but the first is the only reader of the one before it. Moving costs the
// products of halo rows, which otherwise are only gathered, against the columns that edges no
// longer read. O(nodes of the block) for each layer that is moved.
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
  std::string gather;
  std::string zeros;
  std::set<std::string> narrowed;  ///< tensors that get the linear layer's columns
  std::int64_t columns = 0;
  std::int64_t rows = 0;  ///< of what is gathered
};

class Finder {
 public:
  Finder(const Graph& graph, const BlockShape& shape)
      : graph_(graph), matcher_(graph), shape_(shape) {}

  /// The chain that ends in this node; false if there is none or it stays as it is.
  bool find(const Node& linear, LayerMove& move) const {
    if (linear.op_type != "aten.linear.default" || linear.inputs.size() < 2) return false;
    const TensorInfo& weight = graph_.tensor(linear.inputs[1]);
    if (weight.kind != TensorKind::kWeight || weight.shape.size() != 2) return false;
    move.linear = linear.name;
    move.columns = weight.shape[0];
    const Node* node = step_back(linear.inputs[0], move);
    if (node != nullptr && node->op_type == "aten.div.Tensor" && node->inputs.size() == 2 &&
        is_column(node->inputs[1])) {
      node = step_back(node->inputs[0], move);
    }
    const Json* dim = node == nullptr ? nullptr : find_member(node->attrs(), "dim");
    if (node == nullptr || node->op_type != "aten.index_add.default" || node->inputs.size() != 3 ||
        dim == nullptr || *dim != 0 || find_member(node->attrs(), "alpha") != nullptr ||
        !matcher_.is_end(node->inputs[1], 1)) {
      return false;
    }
    const Node* zeros = step_back(node->inputs[0], move);
    if (zeros == nullptr || zeros->op_type != "aten.zeros.default") return false;
    move.zeros = zeros->name;
    TensorId message = node->inputs[2];
    const Node* product = step_back(message, move);
    if (product != nullptr && product->op_type == "aten.mul.Tensor" &&
        product->inputs.size() == 2) {
      const std::size_t side = is_column(product->inputs[1]) ? 0 : 1;
      if (!is_column(product->inputs[1 - side])) return false;
      message = product->inputs[side];
      product = step_back(message, move);
    }
    if (product == nullptr) return false;
    const TensorId source = matcher_.gathered_from(product->outputs.front());
    if (!source.valid()) return false;
    const TensorInfo& x = graph_.tensor(source);
    if (x.shape.size() != 2 || x.dtype != DType::kFloat32 || x.shape[1] != weight.shape[1]) {
      return false;
    }
    move.gather = product->name;
    move.rows = x.shape[0];
    return is_worth_it(x.shape, move.columns);
  }

 private:
  /// The node that makes a tensor which nothing else reads, through aliases.
  const Node* step_back(TensorId id, LayerMove& move) const {
    for (;;) {
      const Node* node = matcher_.producer(id);
      if (node == nullptr || matcher_.only_reader(id) == nullptr ||
          graph_.tensor(id).shape.size() != 2 || node->outputs.size() != 1) {
        return nullptr;
      }
      move.narrowed.insert(graph_.tensor(id).name);
      if (node->op_type != "aten.alias.default") return node;
      id = node->inputs.front();
    }
  }

  bool is_column(TensorId id) const {
    const TensorInfo& tensor = graph_.tensor(id);
    return tensor.shape.size() == 2 && tensor.shape[1] == 1;
  }

  bool is_worth_it(const Shape& x, std::int64_t columns) const {
    const auto width = static_cast<double>(x[1]);
    const auto halo = static_cast<double>(x[0] - shape_.owned);
    const double saved =
        static_cast<double>(shape_.edges) * sizeof(float) * (width - static_cast<double>(columns));
    // Halo rows are multiplied as well, and the rows of a part are gathered for that.
    const double collected = halo > 0 ? 2.0 * static_cast<double>(x[0]) * sizeof(float) * width : 0;
    const double added = halo * 2.0 * width * static_cast<double>(columns) / kOperationsPerByte;
    return saved > collected + added;
  }

  const Graph& graph_;
  GnnMatcher matcher_;
  BlockShape shape_;
};

void move_layer(Json& block, const LayerMove& move) {
  Json nodes = Json::array();
  Json before;
  for (const Json& node : block["nodes"]) {
    if (node["name"] != move.linear) continue;
    before = node;
    before["name"] = move.linear + "@before";
    before["outputs"][0]["name"] = move.linear + "@before";
    before["outputs"][0]["shape"] = {move.rows, move.columns};
    if (before["inputs"].size() > 2) before["inputs"].erase(2);
  }
  for (Json node : block["nodes"]) {
    if (node["name"] == move.gather) {
      before["inputs"][0] = node["inputs"][0];
      nodes.push_back(before);
      node["inputs"][0] = before["outputs"][0];
    }
    if (node["name"] == move.zeros) node["attrs"]["size"][1] = move.columns;
    for (const char* side : {"inputs", "outputs"}) {
      for (Json& tensor : node[side]) {
        if (move.narrowed.contains(tensor["name"].get<std::string>())) {
          tensor["shape"][1] = move.columns;
        }
      }
    }
    if (node["name"] == move.linear) {
      const bool has_bias = node["inputs"].size() > 2;
      node["op_type"] = has_bias ? "aten.add.Tensor" : "aten.alias.default";
      node["inputs"].erase(1);
      node["attrs"] = Json::object();
    }
    nodes.push_back(std::move(node));
  }
  block["nodes"] = std::move(nodes);
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
      move_layer(result, move);
      join_layers(result, move.linear + "@before", shape);
      found = true;
      break;
    }
    if (!found) return result;
  }
}

}  // namespace npu::gnn
