// SPDX-License-Identifier: Apache-2.0
// GELU as models write it out (Hendrycks and Gimpel, arXiv:1606.08415, section 2): x / 2 times one
// plus erf(x / sqrt 2), or plus tanh(sqrt(2 / pi) (x + 0.044715 x^3)), in either order of the
// products. It is found from its erf or tanh. Results inside have one reader, which is in the
// group, and x is all that the group reads, so that the group is convex. O(1) for each of them.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>

#include "ops/op_name.hpp"
#include "passes/fusion/kernel_patterns.hpp"

namespace npu::fusion {
namespace {

class GeluMatcher {
 public:
  GeluMatcher(const FusionBuilder& builder, const Readers& readers, std::int32_t centre)
      : builder_(builder), readers_(readers), centre_(centre) {}

  /// The nodes, the one that gives the result at the end; empty if it is no GELU.
  std::vector<std::int32_t> match() {
    if (!takes(centre_, functional_name(builder_.node(centre_).op_type), 1)) return {};
    const TensorId argument = builder_.node(centre_).inputs.front();
    const std::optional<TensorId> x = is(centre_, "erf") ? erf_of(argument) : tanh_of(argument);
    const auto dtype_of = [&](TensorId id) { return builder_.graph().tensor(id).dtype; };
    if (!x || dtype_of(*x) != dtype_of(argument)) return {};
    nodes_.push_back(centre_);
    const std::int32_t sum = below(centre_);
    if (!adds_one(sum)) return {};
    nodes_.push_back(sum);
    const std::int32_t product = below(sum);
    if (!takes(product, "mul", 2)) return {};
    const TensorId factor = other_operand(product, builder_.node(sum).outputs.front());
    if (factor == *x) {  // x (1 + ..), and then a half of it
      nodes_.push_back(product);
      const std::int32_t half = below(product);
      if (!has_number(half, "mul", 0.5) && !has_number(half, "div", 2.0)) return {};
      nodes_.push_back(half);
      return nodes_;
    }
    const auto half = above(factor, "mul", 0.5);
    if (half != x && above(factor, "div", 2.0) != x) return {};
    nodes_.push_back(product);
    return nodes_;
  }

 private:
  bool is(std::int32_t n, std::string_view name) const {
    return functional_name(builder_.node(n).op_type) == name;
  }

  /// A free node on the device, of an op, with so many tensors, in the dtype of the kernel.
  bool takes(std::int32_t n, std::string_view name, std::size_t tensors) const {
    if (n < 0 || !builder_.free(n) || !builder_.same_device(n, centre_) || !is(n, name))
      return false;
    const Node& node = builder_.node(n);
    return node.inputs.size() == tensors && node.outputs.size() == 1 &&
           is_single(builder_.graph().tensor(node.outputs.front()).dtype);
  }

  /// One with a number besides its tensor, and nothing else.
  bool has_number(std::int32_t n, std::string_view name, double wanted,
                  const char* key = "other") const {
    if (!takes(n, name, 1)) return false;
    const Json& attrs = builder_.node(n).attrs();
    const Json* value = attrs.is_object() && attrs.size() == 1 ? find_member(attrs, key) : nullptr;
    return value != nullptr && value->is_number() &&
           std::abs(value->get<double>() - wanted) <= 1e-6 * wanted;  // as float32 holds it
  }

  bool adds_one(std::int32_t n) const { return has_number(n, "add", 1.0); }

  /// The node that alone reads the result of another one.
  std::int32_t below(std::int32_t n) const {
    return readers_.only(builder_.node(n).outputs.front());
  }

  TensorId other_operand(std::int32_t n, TensorId operand) const {
    const auto& inputs = builder_.node(n).inputs;
    return inputs[inputs[0] == operand ? 1 : 0];
  }

  /// What the maker of a tensor makes it of by a number; it joins.
  std::optional<TensorId> above(TensorId id, std::string_view name, double wanted,
                                const char* key = "other") {
    const std::int32_t n = builder_.producer(id);
    if (n < 0 || readers_.only(id) < 0 || !has_number(n, name, wanted, key)) return std::nullopt;
    nodes_.push_back(n);
    return builder_.node(n).inputs.front();
  }

  /// The x of x / sqrt 2.
  std::optional<TensorId> erf_of(TensorId argument) {
    if (const auto x = above(argument, "div", std::sqrt(2.0))) return x;
    return above(argument, "mul", std::sqrt(0.5));
  }

  /// The x of the polynomial.
  std::optional<TensorId> tanh_of(TensorId argument) {
    const auto scaled = above(argument, "mul", std::sqrt(2.0 / std::numbers::pi));
    if (!scaled) return std::nullopt;
    const std::int32_t sum = builder_.producer(*scaled);
    if (!takes(sum, "add", 2) || readers_.only(*scaled) < 0) return std::nullopt;
    const Json& attrs = builder_.node(sum).attrs();
    if (attrs.is_object() && !attrs.empty()) return std::nullopt;  // alpha
    nodes_.push_back(sum);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t before = nodes_.size();
      const TensorId x = builder_.node(sum).inputs[i];
      const auto cube = above(builder_.node(sum).inputs[1 - i], "mul", 0.044715);
      if (cube && is_cube(*cube, x)) return x;
      nodes_.resize(before);
    }
    return std::nullopt;
  }

  /// x to the power of 3, or x x x.
  bool is_cube(TensorId id, TensorId x) {
    if (above(id, "pow", 3.0, "exponent") == x) return true;
    const std::int32_t product = builder_.producer(id);
    if (!takes(product, "mul", 2) || readers_.only(id) < 0) return false;
    const std::vector<TensorId>& factors = builder_.node(product).inputs;
    if (std::find(factors.begin(), factors.end(), x) == factors.end()) return false;
    const TensorId square = other_operand(product, x);
    const std::int32_t inner = builder_.producer(square);
    if (!takes(inner, "mul", 2) || readers_.only(square) < 0) return false;
    for (const TensorId factor : builder_.node(inner).inputs) {
      if (factor != x) return false;
    }
    nodes_.insert(nodes_.end(), {inner, product});
    return true;
  }

  const FusionBuilder& builder_;
  const Readers& readers_;
  std::int32_t centre_;
  std::vector<std::int32_t> nodes_;
};

}  // namespace

void match_written_gelu(FusionBuilder& builder, const Readers& readers) {
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    ++builder.steps();
    if (!builder.enabled(Pattern::kWrittenGelu, n) || !builder.free(n)) continue;
    const std::string_view name = functional_name(builder.node(n).op_type);
    if (name != "tanh" && name != "erf") continue;
    std::vector<std::int32_t> nodes = GeluMatcher(builder, readers, n).match();
    if (nodes.empty() || !builder.fits(nodes.size())) continue;
    const std::int32_t last = nodes.back();
    builder.add_group(std::move(nodes), number_of(Pattern::kWrittenGelu), last);
  }
}

}  // namespace npu::fusion
