// SPDX-License-Identifier: Apache-2.0
// Comparing group by group names the group of a fault, whatever the fault is: kinds that kernels
// are known to have, each at up to ten places of six small models. A fault is made on the plan's
// side alone, by other weights or another op, and counts if its group's results leave the
// tolerance.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <set>

#include "catch.hpp"
#include "runtime/groups/compare_groups.hpp"
#include "runtime/groups_model.hpp"

namespace npu {
namespace {

using test::GroupsModel;
using Numbers = std::vector<float>;

/// A weight with its numbers in another order or of other sizes.
using ChangeValues = std::function<void(Numbers&, const Shape&)>;
/// Another op; false if the node is none that it can be done to.
using ChangeNode = std::function<bool(Node&)>;

enum class Of : std::uint8_t { kMatrix, kKernel, kVector, kNode };

struct FaultKind {
  const char* name;
  Of of = Of::kNode;
  ChangeValues values;
  ChangeNode node;
};

std::size_t row_size(const Numbers& values, const Shape& shape) {
  return values.size() / static_cast<std::size_t>(shape[0]);
}

void rotate_rows(Numbers& values, const Shape& shape) {
  const auto size = static_cast<std::ptrdiff_t>(row_size(values, shape));
  std::rotate(values.begin(), values.begin() + size, values.end());
}

void swap_rows(Numbers& values, const Shape& shape) {
  const auto size = static_cast<std::ptrdiff_t>(row_size(values, shape));
  std::swap_ranges(values.begin(), values.begin() + size, values.end() - size);
}

/// Input channels: the second dimension.
void swap_columns(Numbers& values, const Shape& shape) {
  const std::size_t rows = row_size(values, shape);
  const std::size_t size = rows / static_cast<std::size_t>(shape[1]);
  for (std::size_t at = 0; at < values.size(); at += rows) {
    for (std::size_t i = 0; i < size; ++i) std::swap(values[at + i], values[at + rows - size + i]);
  }
}

template <typename Change>
ChangeValues in_lines(const Change& change) {
  return [change](Numbers& values, const Shape& shape) {
    const std::ptrdiff_t size = shape.back();
    for (auto at = values.begin(); at != values.end(); at += size) change(at, at + size);
  };
}

void transpose_kernels(Numbers& values, const Shape& shape) {
  const auto size = static_cast<std::size_t>(shape.back());
  for (std::size_t at = 0; at < values.size(); at += size * size) {
    for (std::size_t y = 0; y < size; ++y) {
      for (std::size_t x = 0; x < y; ++x) {
        std::swap(values[at + y * size + x], values[at + x * size + y]);
      }
    }
  }
}

void round_coarsely(Numbers& values, const Shape&) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  for (float& value : values) value = std::round(value / most * 4) * most / 4;
}

template <typename Change>
ChangeValues each_value(const Change& change) {
  return [change](Numbers& values, const Shape&) {
    for (float& value : values) value = change(value);
  };
}

ChangeNode replace_op(std::vector<std::pair<std::string, std::string>> pairs) {
  return [pairs](Node& node) {
    for (const auto& [from, to] : pairs) {
      if (node.op_type != from) continue;
      node.op_type = to;
      if (from.find("tanh") != std::string::npos || from.find("gelu") != std::string::npos) {
        node.json["attrs"] = Json::object();  // bounds, and how it is approximated
      }
      return true;
    }
    return false;
  };
}

ChangeNode set_attr(std::vector<std::string> ops, const std::string& name, const Json& value) {
  return [=](Node& node) {
    if (std::find(ops.begin(), ops.end(), node.op_type) == ops.end()) return false;
    node.json["attrs"][name] = value;
    return true;
  };
}

std::vector<FaultKind> fault_kinds() {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto reverse = [](auto begin, auto end) { std::reverse(begin, end); };
  const auto shift = [](auto begin, auto end) { std::rotate(begin, begin + 1, end); };
  return {
      {"one number", Of::kMatrix, [](Numbers& v, const Shape&) { v[v.size() / 2] = 40; }, {}},
      {"wrong sign", Of::kMatrix, each_value([](float v) { return -v; }), {}},
      {"wrong scale", Of::kMatrix, each_value([](float v) { return v * 1.5F; }), {}},
      {"rounding", Of::kMatrix, round_coarsely, {}},
      {"swapped output channels", Of::kMatrix, swap_rows, {}},
      {"swapped input channels", Of::kMatrix, swap_columns, {}},
      {"output channels off by one", Of::kMatrix, rotate_rows, {}},
      {"input off by one", Of::kMatrix, in_lines(shift), {}},
      {"reverse order",
       Of::kMatrix,
       [](Numbers& v, const Shape&) { std::reverse(v.begin(), v.end()); },
       {}},
      {"a channel left out",
       Of::kMatrix,
       [](Numbers& v, const Shape& shape) { std::fill_n(v.begin(), row_size(v, shape), 0.0F); },
       {}},
      {"wrong padding", Of::kKernel, in_lines(shift), {}},
      {"mirrored kernels", Of::kKernel, in_lines(reverse), {}},
      {"transposed kernels", Of::kKernel, transpose_kernels, {}},
      {"offset left out", Of::kVector, each_value([](float) { return 0.0F; }), {}},
      {"offsets off by one", Of::kVector, rotate_rows, {}},
      {"offset of wrong sign", Of::kVector, each_value([](float v) { return -v; }), {}},
      {"offset that is no number", Of::kVector, each_value([](float) { return kNan; }), {}},
      {"offset that is too large", Of::kVector, each_value([](float v) { return v + 1; }), {}},
      {"another activation",
       Of::kNode,
       {},
       replace_op({{"aten.relu_.default", "aten.sigmoid.default"},
                   {"aten.relu.default", "aten.sigmoid.default"},
                   {"aten.hardtanh_.default", "aten.relu.default"},
                   {"aten.hardtanh.default", "aten.relu.default"},
                   {"aten.gelu.default", "aten.relu.default"},
                   {"aten.tanh.default", "aten.sigmoid.default"},
                   {"aten.sigmoid.default", "aten.tanh.default"}})},
      {"wrong epsilon",
       Of::kNode,
       {},
       set_attr({"aten.batch_norm.default", "aten.layer_norm.default"}, "eps", 2.0)},
      {"another reduction",
       Of::kNode,
       {},
       replace_op(
           {{"aten.mean.dim", "aten.amax.default"}, {"aten.amax.default", "aten.amin.default"}})},
      {"subtracted",
       Of::kNode,
       {},
       replace_op(
           {{"aten.add.Tensor", "aten.sub.Tensor"}, {"aten.add_.Tensor", "aten.sub_.Tensor"}})},
      {"wrong factor of a sum",
       Of::kNode,
       {},
       set_attr({"aten.add.Tensor", "aten.add_.Tensor"}, "alpha", 0.5)},
  };
}

/// The first weight of a node that a kind applies to.
TensorId weight_for(const Graph& graph, const Node& node, Of of) {
  for (const TensorId id : node.inputs) {
    const TensorInfo& tensor = graph.tensor(id);
    if (tensor.kind != TensorKind::kWeight || tensor.consumers.size() != 1) continue;
    if (tensor.dtype != DType::kFloat32 || tensor.shape.empty()) continue;
    const std::size_t rank = tensor.shape.size();
    const bool is_square = rank == 4 && tensor.shape[2] == tensor.shape[3] && tensor.shape[3] > 1;
    if ((of == Of::kMatrix && rank >= 2) || (of == Of::kKernel && is_square) ||
        (of == Of::kVector && rank == 1)) {
      return id;
    }
  }
  return {};
}

/// Makes a fault in a copy of the plan's side; false if the kind does not apply to the node.
bool make_fault(const FaultKind& kind, NodeId place, Graph& graph, TensorMap& weights) {
  if (kind.of == Of::kNode) return kind.node(graph.node(place));
  const TensorId id = weight_for(graph, graph.node(place), kind.of);
  if (!id.valid()) return false;
  Tensor& weight = weights.at(graph.tensor(id).name);
  const auto count = static_cast<std::size_t>(weight.element_count());
  Numbers values(weight.as<float>(), weight.as<float>() + count);
  const Numbers before = values;
  kind.values(values, weight.shape());
  if (std::memcmp(values.data(), before.data(), count * sizeof(float)) == 0) return false;
  Tensor changed(weight.dtype(), weight.shape());
  std::memcpy(changed.mutable_data(), values.data(), count * sizeof(float));
  weight = std::move(changed);
  return true;
}

bool names_node(const GroupReport& report, const std::string& node) {
  if (!report.first) return false;
  const auto& nodes = report.rows[*report.first].nodes;
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

/// Whether the fault counts; all three ways then have to name its node.
bool check_fault(const GroupsModel& model, const FaultKind& kind, NodeId place) {
  Graph graph = model.graph;
  GroupSides sides = model.sides;
  if (!make_fault(kind, place, graph, sides.runner.weights)) return false;
  sides.graph = &graph;
  const std::string& node = graph.node(place).name;
  CAPTURE(kind.name, node);
  const GroupReport alone = compare_groups(sides, {.isolate = true});
  const GroupReport each = compare_groups(sides, {.each = true});
  if (alone.ok() && each.ok()) return false;
  CHECK(names_node(alone, node));
  CHECK(names_node(each, node));
  const GroupReport found = compare_groups(sides, {.bisect = true});
  // Later groups may hide the error; there is nothing to find at the end, then.
  if (found.first) CHECK(names_node(found, node));
  CHECK(found.runs <= 8);
  return true;
}

/// Makes faults of each kind in `places` places, one of each model in turn; all have to be named.
void check_faults(int places_of_kind, std::size_t least_models) {
  std::vector<std::unique_ptr<GroupsModel>> models;
  for (const char* name :
       {"residual", "encoder", "conv_kinds", "depthwise", "bert_tiny", "in_place_reader"}) {
    models.push_back(std::make_unique<GroupsModel>(name));
  }
  int kinds = 0;
  int faults = 0;
  std::set<const GroupsModel*> used;
  for (const FaultKind& kind : fault_kinds()) {
    int places = 0;
    for (std::int32_t n = 0; n < 60 && places < places_of_kind; ++n) {
      for (const auto& model : models) {
        if (n >= static_cast<std::int32_t>(model->graph.nodes().size()) || places == places_of_kind)
          continue;
        if (!check_fault(*model, kind, NodeId{n})) continue;
        ++places;
        used.insert(model.get());
      }
    }
    faults += places;
    kinds += places > 0 ? 1 : 0;
  }
  CHECK(kinds >= 20);
  CHECK(faults >= 20 * places_of_kind);
  CHECK(used.size() >= least_models);
}

}  // namespace

TEST_CASE("faults of twenty kinds are named", "[runtime][groups]") {
  if (test::use_backends()) check_faults(1, 2);
}

TEST_CASE("faults of twenty kinds in ten places are named", "[runtime][groups][long]") {
  if (test::use_backends()) check_faults(10, 5);
}

}  // namespace npu
