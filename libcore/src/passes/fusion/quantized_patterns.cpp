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
#include "passes/fusion/kernel_patterns.hpp"

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

class QuantizedMatcher {
 public:
  QuantizedMatcher(FusionBuilder& builder, const Readers& readers)
      : builder_(builder), readers_(readers) {}

  void run() {
    for (std::int32_t n = builder_.size(); n-- > 0;) {
      ++builder_.steps();
      if (!builder_.free(n) || readers_.unused(n) || !builder_.enabled(Pattern::kQuantized, n)) {
        continue;
      }
      const Node& node = builder_.node(n);
      if (node.outputs.size() != 1 || node.inputs.empty() || !takes_numbers(n)) continue;
      grow(n);
    }
    for (std::int32_t n = 0; n < builder_.size(); ++n) claim_dequantization(n);
  }

 private:
  const TensorInfo& info(TensorId id) const { return builder_.graph().tensor(id); }

  /// The node that dequantizes a tensor from bytes on the device of its reader, or -1. It need not
  /// be in the reader's group: same_device would ask for that, too, within stated groups.
  std::int32_t dequantization(TensorId id, std::int32_t reader) const {
    const std::int32_t n = builder_.producer(id);
    if (n < 0 || !is_dequantization(builder_.node(n).op_type)) return -1;
    if (builder_.node(n).device != builder_.node(reader).device) return -1;
    const Node& node = builder_.node(n);
    const bool is_plain =
        !node.inputs.empty() && is_byte(info(node.inputs.front()).dtype) && is_real(info(id).dtype);
    return is_plain ? n : -1;
  }

  /// With one scale for all numbers.
  bool is_activation(TensorId id, std::int32_t reader) const {
    const std::int32_t n = dequantization(id, reader);
    return n >= 0 && has_one_scale(builder_.node(n));
  }

  /// A number, or a weight, which has one element then.
  bool has_one_scale(const Node& node) const {
    return base_name(node.op_type).ends_with("_per_tensor") &&
           std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                       [&](TensorId id) { return is_weight(builder_, id); });
  }

  /// Dequantized, perhaps through a transposition.
  bool is_factor(TensorId id, std::int32_t reader) const {
    if (dequantization(id, reader) >= 0) return true;
    const std::int32_t n = builder_.producer(id);
    return n >= 0 && builder_.node(n).op_type == "aten.t.default" &&
           dequantization(builder_.node(n).inputs.front(), reader) >= 0;
  }

  /// Whether the operands are such that a kernel on numbers may read them.
  bool takes_numbers(std::int32_t n) const {
    const Node& node = builder_.node(n);
    const Role role = builder_.facts(n).role;
    if (!is_real(info(node.outputs.front()).dtype)) return false;
    if (is_product(role)) {
      // addmm(bias, left, right)
      const std::size_t left = node.op_type.starts_with("aten.addmm") ? 1 : 0;
      if (node.op_type.starts_with("aten.baddbmm") || node.inputs.size() < left + 2) return false;
      return is_activation(node.inputs[left], n) && is_factor(node.inputs[left + 1], n);
    }
    if (role == Role::kAttention) {
      return node.inputs.size() >= 3 &&
             std::all_of(node.inputs.begin(), node.inputs.begin() + 3,
                         [&](TensorId id) { return is_activation(id, n); });
    }
    if (role == Role::kAdd || role == Role::kSub || role == Role::kMul) {
      const Shape& shape = info(node.outputs.front()).shape;
      const auto has_shape = [&](TensorId id) { return info(id).shape == shape; };
      return std::any_of(node.inputs.begin(), node.inputs.end(), has_shape) &&
             std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
               return is_activation(id, n) && has_broadcast_runs(shape, info(id).shape);
             });
    }
    if (role == Role::kCat) {
      return std::all_of(node.inputs.begin(), node.inputs.end(),
                         [&](TensorId id) { return is_activation(id, n); });
    }
    const bool is_average = role == Role::kGlobalPool || role == Role::kMean ||
                            node.op_type.starts_with("aten.avg_pool");
    const bool is_maximum = node.op_type.starts_with("aten.max_pool");
    const bool is_moved = is_maximum || role == Role::kSameOrder || role == Role::kPermute ||
                          is_resampling(node.op_type) || pads_with_number(node) ||
                          moves_elements(node.op_type);
    return (is_moved || is_average || is_function(role)) && node.inputs.size() == 1 &&
           is_activation(node.inputs.front(), n);
  }

  /// Takes in what follows on the only reader of each result, up to a quantization.
  void grow(std::int32_t n) {
    const bool is_attention = builder_.facts(n).role == Role::kAttention;
    const bool is_float_enough = is_product(builder_.facts(n).role) || is_attention;
    std::vector<std::int32_t> nodes{n};
    TensorId value = builder_.node(n).outputs.front();
    bool is_complete = false;
    bool has_sum = false;
    while (!is_complete && nodes.size() < kMostQuantizedNodes) {
      ++builder_.steps();
      const std::int32_t next = readers_.only(value);
      if (next < 0 || !builder_.free(next) || !builder_.same_device(next, n)) break;
      const Node& node = builder_.node(next);
      if (node.outputs.size() != 1) break;
      is_complete = quantizes(node);
      const bool is_norm = nodes.size() == 1 && is_norm_of(next, n);
      const bool may_add = is_float_enough && !has_sum;
      if (!is_complete && !is_norm && (is_attention || !is_step(next, value, may_add))) break;
      has_sum = has_sum || node.inputs.size() == 2;
      nodes.push_back(next);
      value = node.outputs.front();
    }
    if (!is_complete && !is_float_enough) return;
    // Without a quantization a sum of numbers is left to kernels on floats.
    if (!is_complete) nodes.resize(1);
    add_dequantizations(nodes);
    if (!builder_.fits(nodes.size())) return;
    const std::int32_t sink = *std::max_element(nodes.begin(), nodes.end());
    builder_.add_group(std::move(nodes), number_of(Pattern::kQuantized), sink);
  }

  bool quantizes(const Node& node) const {
    return is_quantization(node.op_type) && !node.inputs.empty() && has_one_scale(node) &&
           is_byte(info(node.outputs.front()).dtype);
  }

  /// A batch norm of a convolution's result, all of whose terms are known.
  bool is_norm_of(std::int32_t n, std::int32_t above) const {
    const Node& node = builder_.node(n);
    const TensorId value = builder_.node(above).outputs.front();
    const TensorInfo& result = info(node.outputs.front());
    return builder_.facts(above).role == Role::kConv &&
           builder_.facts(n).role == Role::kBatchNorm && node.inputs.front() == value &&
           result.shape == info(value).shape && is_real(result.dtype) &&
           std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                       [&](TensorId id) { return is_weight(builder_, id); });
  }

  bool is_step(std::int32_t n, TensorId value, bool may_add) const {
    const Node& node = builder_.node(n);
    const TensorInfo& result = info(node.outputs.front());
    if (result.shape != info(value).shape || !is_real(result.dtype)) return false;
    const Role role = builder_.facts(n).role;
    if (node.inputs.size() == 1) return is_function(role);
    if (!may_add || role != Role::kAdd || node.inputs.size() != 2) return false;
    if (find_member(node.attrs(), "alpha") != nullptr) return false;
    const TensorId other = node.inputs[node.inputs[0] == value ? 1 : 0];
    return other != value && is_activation(other, n) && info(other).shape == result.shape;
  }

  /// Those of which only the group reads the result.
  void add_dequantizations(std::vector<std::int32_t>& nodes) const {
    const std::size_t count = nodes.size();
    for (std::size_t i = 0; i < count; ++i) {
      for (const TensorId id : builder_.node(nodes[i]).inputs) {
        const std::int32_t above = dequantization(id, nodes[i]);
        if (above < 0 || !builder_.free(above) || readers_.only(id) != nodes[i]) continue;
        if (builder_.same_device(above, nodes[i])) nodes.push_back(above);
      }
    }
  }

  void claim_dequantization(std::int32_t n) {
    ++builder_.steps();
    if (!builder_.free(n) || !is_dequantization(builder_.node(n).op_type)) return;
    if (!builder_.enabled(Pattern::kDequantizedOnRead, n) || readers_.unused(n)) return;
    const TensorId result = builder_.node(n).outputs.front();
    if (builder_.is_output(result) || dequantization(result, n) < 0) return;
    for (const NodeId reader : info(result).consumers) {
      if (readers_.unused(reader.value)) continue;
      const std::int32_t g = builder_.group_of(reader.value);
      if (g < 0 || builder_.group(g).pattern != number_of(Pattern::kQuantized)) return;
      if (!builder_.same_device(reader.value, n)) return;
    }
    builder_.add_group({n}, number_of(Pattern::kDequantizedOnRead), n);
  }

  FusionBuilder& builder_;
  const Readers& readers_;
};

/// Products of integers of 8 bits whose results are int32, with the conversions of their factors
/// and the subtractions of zero points.
class IntegerMatcher {
 public:
  IntegerMatcher(FusionBuilder& builder, const Readers& readers)
      : builder_(builder), readers_(readers) {}

  void run() {
    for (std::int32_t n = builder_.size(); n-- > 0;) {
      ++builder_.steps();
      if (!builder_.free(n) || readers_.unused(n) || !builder_.enabled(Pattern::kQuantized, n)) {
        continue;
      }
      if (!is_integer_product(n)) continue;
      std::vector<std::int32_t> nodes{n};
      const std::vector<TensorId>& inputs = builder_.node(n).inputs;
      if (!add_factor(inputs[0], n, nodes) || !add_factor(inputs[1], n, nodes)) continue;
      if (nodes.size() == 1 || !builder_.fits(nodes.size())) continue;
      builder_.add_group(std::move(nodes), number_of(Pattern::kQuantized), n);
    }
  }

 private:
  bool is_wide(TensorId id) const { return builder_.graph().tensor(id).dtype == DType::kInt32; }

  bool is_integer_product(std::int32_t n) const {
    const Node& node = builder_.node(n);
    const bool has_factors = node.inputs.size() == 2 && node.outputs.size() == 1;
    if (!has_factors || !is_wide(node.outputs.front())) return false;
    const std::string& op = node.op_type;
    return op == "aten.matmul.default" || op == "aten.mm.default" || op == "aten.bmm.default" ||
           op == "aten.conv1d.default" || op == "aten.conv2d.default" ||
           op == "aten.conv3d.default";
  }

  /// The node that makes a tensor for `reader` alone, which may be in its group; -1 if there is
  /// none.
  std::int32_t maker(TensorId id, std::int32_t reader) const {
    const std::int32_t n = builder_.producer(id);
    const bool may_join = n >= 0 && builder_.free(n) && readers_.only(id) == reader &&
                          builder_.same_device(n, reader);
    return may_join ? n : -1;
  }

  bool add_factor(TensorId id, std::int32_t reader, std::vector<std::int32_t>& nodes) const {
    if (is_weight(builder_, id)) return is_wide(id);
    std::int32_t n = maker(id, reader);
    if (n < 0) return false;
    if (builder_.facts(n).role == Role::kSub) {
      const Node& node = builder_.node(n);
      const bool is_plain = node.inputs.size() == 2 && is_wide(node.inputs[1]) &&
                            find_member(node.attrs(), "alpha") == nullptr;
      const TensorInfo& from = builder_.graph().tensor(node.inputs[0]);
      if (!is_plain || from.shape != builder_.graph().tensor(id).shape) return false;
      nodes.push_back(n);
      n = maker(node.inputs[0], n);
    }
    if (n < 0) return false;
    const Node& cast = builder_.node(n);
    const bool converts =
        cast.op_type == "aten.to.dtype" || cast.op_type == "aten._to_copy.default";
    if (!converts || cast.inputs.size() != 1 || !is_wide(cast.outputs.front())) return false;
    nodes.push_back(n);
    return is_byte(builder_.graph().tensor(cast.inputs.front()).dtype);
  }

  FusionBuilder& builder_;
  const Readers& readers_;
};

}  // namespace

void match_integer_products(FusionBuilder& builder, const Readers& readers) {
  if (!builder.enabled(Pattern::kQuantized)) return;
  IntegerMatcher(builder, readers).run();
}

void match_quantized(FusionBuilder& builder, const Readers& readers) {
  if (!builder.enabled(Pattern::kQuantized)) return;
  QuantizedMatcher(builder, readers).run();
}

}  // namespace npu::fusion
