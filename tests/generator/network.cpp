// SPDX-License-Identifier: Apache-2.0
// Draws a network node by node. Each node is computed as soon as it is drawn, which gives its shape
// and says whether its values are of use: one that overflows, or that is refused, is drawn again.
// No op has a weight of its own: ops are drawn by what they are to fusion, evenly within that.
#include "network.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "graph_builder.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "npu/target/target.hpp"
#include "onnx_network.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::test {
namespace {

using Kind = NetworkTensor::Kind;

/// The argument of a layer that is at its edge while all others are plain; kDrawn: all as drawn.
enum Edge { kDrawn, kPadding, kStride, kDilation, kGroups, kCeil, kChannels, kExtents, kEdges };

/// Ops by what they are to fusion.
struct Catalogue {
  std::vector<std::string> all, undefined;
  std::vector<std::string> anchors, activations, arithmetic, functions;
  std::vector<std::vector<std::string>> others;  ///< by row
  std::map<FusionRole, std::vector<std::string>> alike;
  std::vector<std::pair<std::string, int>> turns;

  Catalogue() {
    std::set<std::string, std::less<>> claimed;
    for (const char* target : {"host", "opencl"}) {
      for (const Device& device : load_target(target).devices) {
        for (const auto& [type, rules] : device.rules_by_type) claimed.insert(type);
      }
    }
    std::map<const OpRow*, std::vector<std::string>> rows;
    for (const std::string& op : claimed) {
      const OpRow* row = row_of(op);
      const OpInfo* info = find_op(op);
      if (row == nullptr || info == nullptr) undefined.push_back(op);
      if (row == nullptr || info == nullptr || row->draw == nullptr) continue;
      all.push_back(op);
      const bool is_layer = info->role == FusionRole::kConv || info->role == FusionRole::kWindow;
      for (int edge = kDrawn; edge < (is_layer ? kEdges : kPadding); ++edge)
        turns.emplace_back(op, edge);
      add(op, *info, rows[row]);
    }
    for (const std::string& op : all) {
      auto& row = rows[row_of(op)];
      if (!row.empty()) others.push_back(row);
      row.clear();
    }
  }

  void add(const std::string& op, const OpInfo& info, std::vector<std::string>& row) {
    const FusionRole role = info.role;
    if (role >= FusionRole::kRelu && role <= FusionRole::kPower) alike[role].push_back(op);
    if (info.kind == OpKind::kAnchor) return anchors.push_back(op);
    if (is_activation(role)) return activations.push_back(op);
    if (role >= FusionRole::kAdd && role <= FusionRole::kPower) return arithmetic.push_back(op);
    if (info.kind == OpKind::kElementwise && !info.is_alias) return functions.push_back(op);
    row.push_back(op);
  }

  static const Catalogue& get() {
    static const Catalogue catalogue;
    return catalogue;
  }
};

bool suits(const Values& values, const DrawnOperand& wanted) {
  for (const Bounded x : values.data) {
    if (wanted.fill == Fill::kPositive && !(x.value - x.error > 0.05)) return false;
    if (wanted.fill == Fill::kNotZero && !(std::abs(x.value) - x.error > 0.05)) return false;
    if (wanted.fill == Fill::kIndices) {
      const auto limit = static_cast<double>(wanted.limit);
      if (x.error != 0 || x.value >= limit || x.value < (wanted.is_signed ? -limit : 0))
        return false;
    }
  }
  return true;
}

/// Of a convolution or a pooling that reads nothing that there is.
void set_edge(NodeDraw& d, int edge) {
  const bool is_pool = d.attrs.contains("kernel_size");
  const auto count = is_pool ? d.attrs["kernel_size"].size() : d.operands[1].shape.size() - 2;
  const std::int64_t channels = edge == kChannels ? d.one_of({15, 17}) : 16 * d.pick(1, 2);
  const std::int64_t groups = edge == kGroups ? (d.chance(50) ? channels / 8 : channels) : 1;
  Shape source{1, channels}, weight{channels, channels / groups};
  Ints kernel, padding, stride, dilation;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t taps = is_pool ? d.pick(2, 3) : d.one_of({1, 2, 3, 3});
    kernel.push_back(taps);
    weight.push_back(taps);
    source.push_back(edge == kExtents ? taps + d.pick(is_pool ? 0 : -1, 1)
                                      : d.pick(count == 3 ? 4 : 6, count == 3 ? 5 : 9));
    padding.push_back(edge == kPadding && !is_pool    ? taps + d.pick(-1, 1)
                      : edge == kCeil || d.chance(50) ? taps / 2
                                                      : 0);
    stride.push_back(edge == kStride ? taps + d.pick(0, 1) : is_pool ? taps : 1);
    dilation.push_back(edge == kDilation ? d.pick(2, 3) : 1);
  }
  if (edge == kStride && d.attrs["padding"] == "same") d.attrs["padding"] = "valid";
  d.operands[0].shape = source;
  if (!is_pool) d.operands[1].shape = weight;
  if (!is_pool && d.operands.size() > 2) d.operands[2].shape = {channels};
  const std::pair<const char*, Json> arguments[] = {{"kernel_size", kernel},
                                                    {"padding", padding},
                                                    {"stride", stride},
                                                    {"dilation", dilation},
                                                    {"groups", groups},
                                                    {"ceil_mode", edge == kCeil},
                                                    {"output_padding", Ints(count, 0)}};
  for (const auto& [argument, value] : arguments) {
    if (d.attrs.contains(argument) && !d.attrs[argument].is_string()) d.attrs[argument] = value;
  }
}

class Drawer {
 public:
  Drawer(Random& random, const NetworkStyle& style) : random_(random), style_(style) {}

  Network draw() {
    NodeDraw dice(random_, "", style_.dtype);
    if (style_.is_attention) {
      add_attention(dice);
      choose_outputs(dice);
      return std::move(network_);
    }
    const std::int64_t most = style_.most_nodes,
                       count = style_.is_chain   ? dice.pick(2, std::min<std::int64_t>(most, 4))
                               : dice.chance(20) ? 1
                                                 : dice.pick(1, most);
    for (std::int64_t i = 0; i < count && style_.turn < 0; ++i) {
      for (int attempt = 0; attempt < 8; ++attempt) {
        follows_ = attempt < 5 && !network_.nodes.empty() && (style_.is_chain || dice.chance(30));
        const bool is_given = network_.nodes.empty() && !style_.first.empty();
        if (add_node(is_given ? style_.first : choose_op(dice), attempt < 5)) break;
      }
    }
    // As in a model in int8, where the next product reads bytes.
    follows_ = style_.is_chain && !network_.nodes.empty() && dice.chance(75);
    if (follows_) add_node("quantized_decomposed.quantize_per_tensor.default", true);
    const auto& turns = Catalogue::get().turns;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(5, most) && style_.turn >= 0; ++i) {
      std::size_t turn = index_of(5 * style_.turn + i) % turns.size();
      // Another one where it has no form in this style.
      for (int attempt = 1; !add_node(turns[turn].first, false, turns[turn].second); ++attempt) {
        if (attempt % 4 == 0) turn = index_of(dice.pick(0, std::ssize(turns) - 1));
      }
    }
    choose_outputs(dice);
    return std::move(network_);
  }

 private:
  /// The first node is as often something else as a product, but in chains; those behind are mostly
  /// element-wise, and often of the kind of the one that they follow.
  const std::string& choose_op(NodeDraw& dice) {
    const Catalogue& all = Catalogue::get();
    const auto any = [&](const std::vector<std::string>& list) -> const std::string& {
      return list[index_of(dice.pick(0, std::ssize(list) - 1))];
    };
    if (follows_ && dice.chance(style_.is_chain ? 70 : 40)) {
      const auto found = all.alike.find(fusion_role(network_.nodes.back().op));
      if (found != all.alike.end()) return any(found->second);
    }
    const std::int64_t kind = network_.nodes.empty() ? dice.pick(style_.is_chain ? 100 : 50, 129)
                              : style_.is_chain      ? dice.pick(-20, 64)
                                                     : dice.pick(0, 99);
    if (kind < 25) return any(all.activations);
    if (kind < 50) return any(all.arithmetic);
    if (kind < 60) return any(all.functions);
    if (kind < 80 || kind >= 100) return any(all.anchors);
    return any(all.others[index_of(dice.pick(0, std::ssize(all.others) - 1))]);
  }

  bool find(NodeDraw& draw, DrawnOperand& operand,
            const std::function<bool(const Shape&)>& wanted) {
    const bool is_last = follows_ && draw.operands.empty();
    if (style_.turn >= 0 || (style_.is_chain && !is_last)) return false;
    std::vector<std::size_t> found;
    for (std::size_t i = is_last ? network_.nodes.back().results[0] : 0;
         i < network_.tensors.size(); ++i) {
      const NetworkTensor& tensor = network_.tensors[i];
      if (tensor.values.dtype != operand.dtype || !wanted(tensor.values.shape)) continue;
      if (tensor.kind == Kind::kWeight && !draw.chance(10)) continue;
      if (suits(tensor.values, operand)) found.push_back(i);
    }
    if (found.empty()) return false;
    const std::size_t chosen =
        draw.chance(65) ? found.back() : found[index_of(draw.pick(0, std::ssize(found) - 1))];
    operand.existing = static_cast<std::int32_t>(chosen);
    operand.shape = network_.tensors[chosen].values.shape;
    return true;
  }

  /// False if nothing came of it. `joins`: it has to read what there is.
  bool add_node(const std::string& op, bool joins, int edge = kDrawn) {
    NodeDraw draw(random_, op, style_.dtype);
    draw.may_be_empty = style_.may_be_empty;
    draw.find = [&](DrawnOperand& operand, const std::function<bool(const Shape&)>& wanted) {
      return find(draw, operand, wanted);
    };
    try {
      row_of(op)->draw(draw);
      if (edge != kDrawn) set_edge(draw, edge);
    } catch (const Error&) {
      return false;
    }
    const auto& operands = draw.operands;
    const bool is_joined = network_.nodes.empty() || operands.empty() ||
                           std::any_of(operands.begin(), operands.end(),
                                       [](const DrawnOperand& o) { return o.existing >= 0; });
    if (joins && !is_joined) return false;
    const std::size_t before = network_.tensors.size();
    NetworkNode node{.op = op, .attrs = draw.attrs, .operands = {}, .results = {}};
    bool has_data = follows_;
    for (DrawnOperand& operand : draw.operands) {
      operand.is_weight |= style_.is_chain && has_data;
      has_data |= !operand.is_weight;
      node.operands.push_back(tensor_of(operand));
    }
    if (!compute(node)) {
      network_.tensors.resize(before);
      return false;
    }
    network_.nodes.push_back(node);
    if (node.results.size() > 1 && op.find("split") != std::string::npos && draw.chance(40))
      pick_result(node, draw);
    return true;
  }

  /// A node of these operands; its result.
  std::size_t append(const std::string& op, std::vector<std::size_t> operands,
                     Json attrs = Json::object()) {
    NetworkNode node{
        .op = op, .attrs = std::move(attrs), .operands = std::move(operands), .results = {}};
    if (!compute(node)) throw Error(ErrorCode::kInvalidGraph, op + " gives nothing useful");
    network_.nodes.push_back(std::move(node));
    return network_.nodes.back().results.front();
  }

  /// Attention as models write it out: between its two products up to four scales, masks that are
  /// added or fill, and views of the scores, by heads or one behind the other.
  void add_attention(NodeDraw& dice) {
    const auto given = [&](Shape shape, DType dtype) {
      return tensor_of({.shape = std::move(shape), .dtype = dtype, .is_weight = dice.chance(10)});
    };
    const Shape heads{dice.pick(1, 3), dice.pick(1, 4), dice.one_of<std::int64_t>({1, 5, 16}),
                      dice.one_of<std::int64_t>({1, 7, 16, 17})};
    const Shape planes{heads[0] * heads[1], heads[2], heads[3]};
    const bool is_divided = dice.chance(50);
    const Shape& shape = is_divided ? heads : planes;
    const auto matrices = [&](std::int64_t rows, std::int64_t columns) {
      Shape result(shape.begin(), shape.end() - 2);
      result.insert(result.end(), {rows, columns});
      return given(std::move(result), style_.dtype);
    };
    const std::string product = is_divided ? "aten.matmul.default" : "aten.bmm.default";
    const auto width = dice.one_of<std::int64_t>({1, 4, 16});
    std::size_t scores = append(product, {matrices(heads[2], width), matrices(width, heads[3])});
    const auto view = [&](const Shape& as) {
      if (network_.tensors[scores].values.shape == as) return;
      scores = append("aten.view.default", {scores}, {{"size", as}});
    };
    // Models multiply stacked matrices and mask by heads, or the other way round.
    if (dice.chance(50)) view(is_divided ? planes : heads);
    for (std::int64_t i = dice.pick(0, 4); i > 0; --i) {
      const Shape now = network_.tensors[scores].values.shape;
      Shape mask = now;
      for (std::size_t at = 0; at < mask.size(); ++at) {
        if (dice.chance(30)) mask[at] = 1;
      }
      if (dice.chance(20)) mask.erase(mask.begin(), mask.end() - 2);
      switch (dice.pick(0, 5)) {
        case 0:
          scores = append("aten.mul.Tensor", {scores}, {{"other", 0.3}});
          break;
        case 1:
          scores = append("aten.add.Tensor", {scores, given(mask, style_.dtype)});
          break;
        case 2:
          scores = append("aten.masked_fill.Scalar", {scores, given(mask, DType::kBool)},
                          {{"value", dice.one_of({-1e4, -3.0})}});
          break;
        case 3:
          scores = append("aten.where.ScalarOther", {given(mask, DType::kBool), scores},
                          {{"other", dice.one_of({-1e4, -3.0})}});
          break;
        default:
          view(now.size() == 3 ? heads : planes);
      }
    }
    view(shape);
    scores = append("aten.softmax.int", {scores}, {{"dim", -1}});
    append(product, {scores, matrices(heads[3], dice.one_of({width, std::int64_t{9}}))});
  }

  std::size_t tensor_of(const DrawnOperand& operand) {
    if (operand.existing >= 0) return index_of(operand.existing);
    NetworkTensor tensor{
        .name = "", .kind = operand.is_weight ? Kind::kWeight : Kind::kInput, .values = {}};
    tensor.name = (operand.is_weight ? "p_w" : "x") + std::to_string(network_.tensors.size());
    tensor.data = random_values(operand, random_);
    if (style_.has_specials && is_floating_point(operand.dtype)) add_specials(tensor);
    tensor.values = values_of(tensor.data);
    network_.tensors.push_back(std::move(tensor));
    return network_.tensors.size() - 1;
  }

  void add_specials(NetworkTensor& tensor) {
    NodeDraw dice(random_, "", style_.dtype);
    if (tensor.data.element_count() == 0 || !dice.chance(tensor.kind == Kind::kInput ? 80 : 10))
      return;
    for (std::int64_t i = dice.pick(1, 3); i > 0; --i) {
      const double special = dice.one_of(
          {double{NAN}, HUGE_VAL, -HUGE_VAL, -0.0, 1e-40, -1e-42, 3e38, -1e30, 1.2e-38, 60000.0});
      set_element(tensor.data, dice.pick(0, tensor.data.element_count() - 1), special);
    }
  }

  bool compute(NetworkNode& node) {
    std::vector<const Values*> operands;
    for (const std::size_t id : node.operands) operands.push_back(&network_.tensors[id].values);
    // Attributes of ONNX are float32.
    for (auto& [key, value] : node.attrs.items()) {
      if (style_.opset > 0 && value.is_number_float()) value = double{value.get<float>()};
    }
    Results results;
    try {
      const Call call(node.op, operands, node.attrs);
      if (style_.opset > 0 && !has_onnx_form(call, node.attrs, style_.opset)) return false;
      results = results_of(call);
    } catch (const Error&) {
      return false;
    }
    for (const Values& values : results) {
      if (!is_useful(values)) return false;
    }
    const std::string name = "n" + std::to_string(network_.nodes.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      node.results.push_back(network_.tensors.size());
      const std::string own = results.size() == 1 ? name : name + "_" + std::to_string(i);
      network_.tensors.push_back(
          {.name = own, .kind = Kind::kResult, .values = std::move(results[i])});
    }
    return true;
  }

  bool is_useful(const Values& values) const {
    std::int64_t unknown = 0;
    for (const Bounded x : values.data) {
      if (!x.is_known()) ++unknown;
      if (!style_.has_specials && std::isfinite(x.value) && std::abs(x.value) > 1e4) return false;
    }
    return std::ssize(values.data) <= 4096 && 3 * unknown <= std::ssize(values.data);
  }

  /// A node of Python's getitem behind one of several results.
  void pick_result(const NetworkNode& producer, NodeDraw& draw) {
    NetworkNode node{.op = "<built-in function getitem>",
                     .attrs = {{"index", draw.pick(0, std::ssize(producer.results) - 1)}},
                     .operands = producer.results,
                     .results = {}};
    if (compute(node)) network_.nodes.push_back(node);
  }

  void choose_outputs(NodeDraw& dice) {
    std::set<std::size_t> read;
    for (const NetworkNode& node : network_.nodes)
      read.insert(node.operands.begin(), node.operands.end());
    for (const NetworkNode& node : network_.nodes) {
      for (const std::size_t id : node.results) {
        if (!read.contains(id) || dice.chance(12)) network_.outputs.push_back(id);
      }
    }
  }

  Random& random_;
  const NetworkStyle& style_;
  Network network_;
  bool follows_ = false;  ///< the next node is about the last result
};

double drawn_value(const DrawnOperand& operand, NodeDraw& dice) {
  const auto limit = operand.limit;
  if (operand.fill == Fill::kIndices)
    return static_cast<double>(dice.pick(operand.is_signed ? -limit : 0, limit - 1));
  if (operand.dtype == DType::kBool) return dice.chance(50) ? 1 : 0;
  if (!is_floating_point(operand.dtype)) {
    double value = static_cast<double>(
        dice.pick(operand.dtype == DType::kUInt8 || operand.fill != Fill::kAny ? 1 : -8, 8));
    if (operand.fill == Fill::kNotZero && operand.dtype != DType::kUInt8 && dice.chance(50))
      value = -value;
    return value;
  }
  const double fraction = static_cast<double>(dice.random() >> 11) * 0x1p-53;
  if (operand.fill == Fill::kPositive) return 0.1 + 3 * fraction;
  if (operand.fill == Fill::kNotZero) return (dice.chance(50) ? 1 : -1) * (0.2 + 2 * fraction);
  return 4 * fraction - 2;
}

}  // namespace

Tensor tensor_of(const Values& values) {
  Tensor tensor(values.dtype, values.shape);
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    set_element(tensor, static_cast<std::int64_t>(i), values.data[i].value);
  }
  return tensor;
}

Tensor random_values(const DrawnOperand& operand, Random& random) {
  NodeDraw dice(random, "", operand.dtype);
  Tensor tensor(operand.dtype, operand.shape);
  double scale = dice.chance(80) ? 1 : dice.one_of({0.1, 4.0, 10.0});
  // Sums of many products stay around 1.
  if (operand.is_weight && operand.shape.size() > 1) {
    scale = 1.5 / std::sqrt(std::max(
                      1.0, static_cast<double>(tensor.element_count() /
                                               std::max<std::int64_t>(operand.shape[0], 1))));
  }
  if (operand.fill != Fill::kAny || !is_floating_point(operand.dtype)) scale = 1;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    set_element(tensor, i, scale * drawn_value(operand, dice));
  }
  return tensor;
}

NetworkStyle draw_style(Random& random) {
  NodeDraw dice(random, "", DType::kFloat32);
  NetworkStyle style;
  if (dice.chance(20)) {
    style.opset = dice.pick(1, 24);
    style.most_nodes = 4;
    return style;
  }
  if (dice.chance(15)) style.dtype = dice.one_of({DType::kBFloat16, DType::kFloat16});
  style.is_chain = dice.chance(40);
  style.is_attention = !style.is_chain && dice.chance(15);
  style.has_specials = dice.chance(10);
  style.may_be_empty = dice.chance(4);
  return style;
}

Network draw_network(Random& random, NetworkStyle style) {
  for (int attempt = 0;; ++attempt) {
    if (attempt == 20) style.first.clear();  // it is never drawn in this style
    try {
      Network network = Drawer(random, style).draw();
      remove_unread(network);
      if (!network.outputs.empty()) return network;
    } catch (const Error&) {  // nothing came of an attention
      if (!style.is_attention) throw;
    }
  }
}

bool recompute(Network& network) {
  for (const NetworkNode& node : network.nodes) {
    std::vector<const Values*> operands;
    for (const std::size_t id : node.operands) operands.push_back(&network.tensors[id].values);
    Results results;
    try {
      results = results_of(Call(node.op, operands, node.attrs));
    } catch (const Error&) {
      return false;
    }
    if (results.size() != node.results.size()) return false;
    for (std::size_t i = 0; i < results.size(); ++i)
      network.tensors[node.results[i]].values = std::move(results[i]);
  }
  return true;
}

void remove_unread(Network& network) {
  std::set<std::size_t> read(network.outputs.begin(), network.outputs.end());
  for (std::size_t i = network.nodes.size(); i-- > 0;) {
    const NetworkNode& node = network.nodes[i];
    const bool is_read = std::any_of(node.results.begin(), node.results.end(),
                                     [&](std::size_t id) { return read.contains(id); });
    if (!is_read) {
      network.nodes.erase(network.nodes.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    read.insert(node.operands.begin(), node.operands.end());
    read.insert(node.results.begin(), node.results.end());
  }
  std::vector<std::size_t> places(network.tensors.size());
  std::vector<NetworkTensor> kept;
  for (std::size_t i = 0; i < network.tensors.size(); ++i) {
    places[i] = kept.size();
    if (read.contains(i)) kept.push_back(std::move(network.tensors[i]));
  }
  network.tensors = std::move(kept);
  const auto renumber = [&](std::vector<std::size_t>& ids) {
    for (std::size_t& id : ids) id = places[id];
  };
  renumber(network.outputs);
  for (NetworkNode& node : network.nodes) {
    renumber(node.operands);
    renumber(node.results);
  }
}

Json Network::document(bool with_constants) const {
  GraphBuilder builder("network");
  for (const NetworkTensor& tensor : tensors) {
    const std::string dtype(dtype_name(tensor.values.dtype));
    if (tensor.kind == Kind::kInput) builder.input(tensor.name, tensor.values.shape, dtype);
    if (tensor.kind == Kind::kWeight)
      builder.weight(tensor.name.substr(2), tensor.values.shape, dtype);
    if (tensor.kind != Kind::kWeight || !with_constants) continue;
    Json data = Json::array();
    for (const Bounded x : tensor.values.data) {
      if (tensor.values.dtype == DType::kBool) {
        data.push_back(x.value != 0);
      } else if (is_floating_point(tensor.values.dtype)) {
        data.push_back(std::isnan(x.value)   ? Json("nan")
                       : std::isinf(x.value) ? Json(x.value > 0 ? "inf" : "-inf")
                                             : Json(x.value));
      } else {
        data.push_back(static_cast<std::int64_t>(x.value));
      }
    }
    if (tensor.values.shape.empty()) data = data[0];
    builder.document()["constants"][tensor.name] = {{"data", data}, {"dtype", dtype}};
  }
  for (const NetworkNode& node : nodes) {
    std::vector<std::string> operands, dtypes;
    std::vector<Shape> shapes;
    for (const std::size_t id : node.operands) operands.push_back(tensors[id].name);
    for (const std::size_t id : node.results) {
      shapes.push_back(tensors[id].values.shape);
      dtypes.emplace_back(dtype_name(tensors[id].values.dtype));
    }
    if (shapes.size() == 1) {
      builder.node(name_of(node), node.op, operands, shapes[0], node.attrs, dtypes[0]);
    } else {
      builder.node_with_typed_results(name_of(node), node.op, operands, shapes, dtypes, node.attrs);
    }
  }
  for (const std::size_t id : outputs) builder.output(tensors[id].name);
  return builder.document();
}

std::string Network::name_of(const NetworkNode& node) const {
  const std::string& result = tensors[node.results[0]].name;
  return result.substr(0, result.find('_'));
}

std::vector<Tensor> Network::inputs() const {
  std::vector<Tensor> list;
  for (const NetworkTensor& tensor : tensors) {
    if (tensor.kind == Kind::kInput) list.push_back(tensor.data);
  }
  return list;
}

std::map<std::string, Tensor> Network::data() const {
  std::map<std::string, Tensor> map;
  for (const NetworkTensor& tensor : tensors) {
    if (tensor.kind != Kind::kResult) map[tensor.name] = tensor.data;
  }
  return map;
}

std::string Network::text() const {
  std::string text;
  for (const NetworkNode& node : nodes) {
    text += tensors[node.results[0]].name + " = " + node.op + "(";
    for (const std::size_t id : node.operands) {
      const Values& values = tensors[id].values;
      text += tensors[id].name + ":" + std::string(dtype_name(values.dtype)) +
              shape_text(values.shape) + " ";
    }
    text += node.attrs.dump() + ")\n";
  }
  return text;
}

const std::vector<std::string>& drawn_ops() { return Catalogue::get().all; }
std::vector<std::string> undefined_ops() { return Catalogue::get().undefined; }

}  // namespace npu::test
