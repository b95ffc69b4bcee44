// SPDX-License-Identifier: Apache-2.0
// Ops on quantized numbers: what models with quantize and dequantize nodes write as a
// dequantization of each operand, an op on floats, functions of its result, and a quantization. A
// kernel reads and writes the numbers, and no tensor of floats is in memory.
//
// Directly behind a convolution a batch norm belongs to it, too.
//
// A convolution, a matrix product or an attention needs no quantization behind it: its result may
// be floats.
// Other ops without one have nothing to gain. Ops are visited from the end of the list, so that of
// two convolutions whose results are added the one that is computed later takes the addition. A
// dequantization joins the group of its only reader; one with several readers that are all such
// groups is a group of its own that needs no kernel. O(nodes + edges).
#include <algorithm>

#include "ops/broadcast_runs.hpp"
#include "ops/moved_ops.hpp"
#include "ops/op_name.hpp"
#include "passes/fusion/node_facts.hpp"
#include "passes/fusion/patterns.hpp"
#include "passes/fusion/written_form.hpp"

namespace npu::fusion {
namespace {

constexpr std::size_t kMostQuantizedNodes = 16;

/// A function of one operand that a table of 256 numbers, or a kernel in front of its quantization,
/// computes.
bool is_function(Role role) {
  return (is_activation(role) && role != Role::kRareActivation) || role == Role::kUnary;
}

/// What stands for bytes; float64 on devices alone that compute with it as with float32.
bool is_real(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

bool pads_with_number(const Node& node) {
  const Json* mode = find_member(node.attrs(), "mode");
  return is_padding(node.op_type) && (mode == nullptr || *mode == "constant");
}

/// A number, or a weight, which has one element then.
bool has_one_scale(const FusionBuilder& builder, const Node& node) {
  return base_name(node.op_type).ends_with("_per_tensor") && has_known_operands(builder, node);
}

/// The node that dequantizes a tensor from bytes on the device of its reader, or -1. It need not be
/// in the reader's group: same_device would ask for that, too, within stated groups.
std::int32_t dequantization(const FusionBuilder& builder, TensorId id, std::int32_t reader) {
  const std::int32_t n = builder.producer(id);
  if (n < 0 || !is_dequantization(builder.node(n).op_type)) return -1;
  const Node& node = builder.node(n);
  const bool is_plain = node.device == builder.node(reader).device && !node.inputs.empty() &&
                        is_byte(builder.tensor(node.inputs.front()).dtype) &&
                        is_real(builder.tensor(id).dtype);
  return is_plain ? n : -1;
}

class QuantizedMatch {
 public:
  QuantizedMatch(FusionBuilder& builder, std::int32_t op)
      : builder_(builder), op_(op), role_(builder.role(op)) {}

  /// The op with what follows on the only reader of each result, up to a quantization, and the
  /// dequantizations of which only these read the result.
  NodeList match() {
    const Node& op = builder_.node(op_);
    if (builder_.unused(op_) || op.outputs.size() != 1 || op.inputs.empty() || !takes_numbers()) {
      return {};
    }
    const bool is_attention = role_ == Role::kAttention;
    const bool is_float_enough = is_product(role_) || is_attention;
    bool has_sum = false;
    NodeList nodes{op_};
    // Without a quantization a sum of numbers is left to kernels on floats.
    follow(builder_, Readers::kNeeded, kMostQuantizedNodes, nodes, [&](const Link& next) {
      const Node& node = builder_.node(next.node);
      if (node.outputs.size() != 1) return Step::kStop;
      if (quantizes(node)) return Step::kLast;
      const bool is_norm = nodes.size() == 1 && is_norm_of_op(next.node);
      const bool may_add = is_float_enough && !has_sum;
      if (!is_norm && (is_attention || !is_step(next, may_add))) return Step::kStop;
      has_sum = has_sum || node.inputs.size() == 2;
      return Step::kPass;
    });
    if (nodes.size() == 1 && !is_float_enough) return {};
    for (const std::int32_t n : NodeList(nodes)) {
      for (const TensorId id : builder_.node(n).inputs) {
        const std::int32_t above = builder_.above(id, n, Readers::kNeeded);
        if (above >= 0 && dequantization(builder_, id, n) == above) nodes.push_back(above);
      }
    }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

 private:
  const TensorInfo& info(TensorId id) const { return builder_.tensor(id); }

  /// With one scale for all numbers.
  bool is_activation(TensorId id) const {
    const std::int32_t n = dequantization(builder_, id, op_);
    return n >= 0 && has_one_scale(builder_, builder_.node(n));
  }
  bool are_activations(std::span<const TensorId> ids) const {
    return std::all_of(ids.begin(), ids.end(), [&](TensorId id) { return is_activation(id); });
  }

  /// Dequantized, perhaps through a transposition.
  bool is_known_factor(TensorId id) const {
    const std::int32_t n = builder_.producer(id);
    const bool is_transposed = n >= 0 && builder_.node(n).op_type == "aten.t.default";
    return dequantization(builder_, id, op_) >= 0 ||
           (is_transposed && dequantization(builder_, builder_.node(n).inputs.front(), op_) >= 0);
  }

  /// Whether the operands are such that a kernel on numbers may read them.
  bool takes_numbers() const {
    const Node& node = builder_.node(op_);
    const std::span<const TensorId> inputs = node.inputs;
    if (!is_real(builder_.result(op_).dtype)) return false;
    if (is_product(role_)) {
      // addmm(bias, left, right)
      const std::size_t left = node.op_type.starts_with("aten.addmm") ? 1 : 0;
      if (node.op_type.starts_with("aten.baddbmm") || inputs.size() < left + 2) return false;
      return is_activation(inputs[left]) && is_known_factor(inputs[left + 1]);
    }
    if (role_ == Role::kAttention) return inputs.size() >= 3 && are_activations(inputs.first(3));
    if (role_ == Role::kAdd || role_ == Role::kSub || role_ == Role::kMul) {
      const Shape& shape = builder_.result(op_).shape;
      const auto has_shape = [&](TensorId id) { return info(id).shape == shape; };
      return std::any_of(inputs.begin(), inputs.end(), has_shape) && are_activations(inputs) &&
             std::all_of(inputs.begin(), inputs.end(),
                         [&](TensorId id) { return has_broadcast_runs(shape, info(id).shape); });
    }
    if (role_ == Role::kCat) return are_activations(inputs);
    const std::string& op = node.op_type;
    const bool is_window = op.starts_with("aten.avg_pool") || op.starts_with("aten.max_pool");
    const bool is_moved = role_ == Role::kSameOrder || role_ == Role::kPermute ||
                          is_resampling(op) || pads_with_number(node) || moves_elements(op);
    const bool is_mean = role_ == Role::kGlobalPool || role_ == Role::kMean;
    return (is_window || is_moved || is_mean || is_function(role_)) && inputs.size() == 1 &&
           is_activation(inputs.front());
  }

  bool quantizes(const Node& node) const {
    return is_quantization(node.op_type) && !node.inputs.empty() && has_one_scale(builder_, node) &&
           is_byte(info(node.outputs.front()).dtype);
  }

  /// A batch norm of the op, a convolution, all of whose terms are known.
  bool is_norm_of_op(std::int32_t n) const {
    return role_ == Role::kConv && builder_.role(n) == Role::kBatchNorm &&
           builder_.node(n).inputs.front() == builder_.node(op_).outputs.front() &&
           builder_.result(n).shape == builder_.result(op_).shape &&
           is_real(builder_.result(n).dtype) && has_known_operands(builder_, builder_.node(n));
  }

  bool is_step(const Link& next, bool may_add) const {
    const Node& node = builder_.node(next.node);
    const TensorInfo& result = builder_.result(next.node);
    if (result.shape != info(next.tensor).shape || !is_real(result.dtype)) return false;
    const Role role = builder_.role(next.node);
    if (node.inputs.size() == 1) return is_function(role);
    if (!may_add || role != Role::kAdd || node.inputs.size() != 2) return false;
    const TensorId other = node.inputs[node.inputs[0] == next.tensor ? 1 : 0];
    return find_member(node.attrs(), "alpha") == nullptr && other != next.tensor &&
           is_activation(other) && info(other).shape == result.shape;
  }

  FusionBuilder& builder_;
  std::int32_t op_;
  Role role_;
};

/// A factor of an integer product: a number of 8 bits that is converted to int32, perhaps less its
/// zero point.
bool is_converted(const FusionBuilder& builder, std::int32_t n) {
  const Node& node = builder.node(n);
  if (builder.result(n).dtype != DType::kInt32) return false;
  if (builder.role(n) == Role::kSub) {
    return builder.tensor(node.inputs[1]).dtype == DType::kInt32 &&
           find_member(node.attrs(), "alpha") == nullptr &&
           builder.tensor(node.inputs[0]).shape == builder.result(n).shape;
  }
  return (node.op_type == "aten.to.dtype" || node.op_type == "aten._to_copy.default") &&
         is_byte(builder.tensor(node.inputs.front()).dtype);
}

/// Products of integers of 8 bits whose results are int32, with the conversions of their factors
/// and the subtractions of zero points.
NodeList integer_product(FusionBuilder& builder, std::int32_t n) {
  const std::string converted = "to(_)|_to_copy(_)";
  const std::string factor = "sub(" + converted + ",_)|" + converted;
  NodeList nodes{n};
  const Node& node = builder.node(n);
  const std::string_view op = functional_name(node.op_type);
  const bool is_named = op == "matmul" || op == "mm" || op == "bmm" || op == "conv1d" ||
                        op == "conv2d" || op == "conv3d";
  if (!is_named || !node.op_type.ends_with(".default") || builder.unused(n) ||
      node.inputs.size() != 2 || node.outputs.size() != 1 ||
      builder.result(n).dtype != DType::kInt32) {
    return {};
  }
  for (const TensorId id : node.inputs) {
    if (is_weight(builder, id) && builder.tensor(id).dtype == DType::kInt32) continue;
    const std::int32_t above = builder.above(id, n, Readers::kNeeded);
    WrittenForm form(builder, Readers::kNeeded);
    if (above < 0 || !form.matches(above, factor)) return {};
    nodes.insert(nodes.end(), form.nodes().begin(), form.nodes().end());
  }
  const bool is_integer = std::all_of(nodes.begin() + 1, nodes.end(), [&](std::int32_t each) {
    return is_converted(builder, each);
  });
  if (nodes.size() == 1 || !is_integer) return {};
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace

void match_integer_products(FusionBuilder& builder) {
  match_each(
      builder, "quantized"_pattern, [&](std::int32_t n) { return integer_product(builder, n); },
      Order::kLastFirst);
}

void match_quantized(FusionBuilder& builder) {
  match_each(
      builder, "quantized"_pattern,
      [&](std::int32_t n) { return QuantizedMatch(builder, n).match(); }, Order::kLastFirst);
  match_each(builder, "dequantized-on-read"_pattern, [&](std::int32_t n) {
    const Node& node = builder.node(n);
    if (!is_dequantization(node.op_type) || builder.unused(n)) return NodeList();
    const TensorId result = node.outputs.front();
    const std::vector<NodeId>& readers = builder.tensor(result).consumers;
    const bool are_quantized = std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      if (builder.unused(reader.value)) return true;
      const std::int32_t g = builder.group_of(reader.value);
      return g >= 0 && builder.group(g).pattern == "quantized"_pattern &&
             builder.same_device(reader.value, n);
    });
    const bool is_read = are_quantized && !builder.is_output(result);
    return NodeList(is_read && dequantization(builder, result, n) >= 0 ? 1 : 0, n);
  });
}

}  // namespace npu::fusion
