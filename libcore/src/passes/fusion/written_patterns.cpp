// SPDX-License-Identifier: Apache-2.0
// Functions that models write out: GELU (Hendrycks and Gimpel, arXiv:1606.08415, section 2), and
// norms by the root of a mean square.
//
// Both are found from their result by an expression, inside which results have one reader, and
// read one tensor, so that groups are convex. O(nodes).
#include <algorithm>
#include <string>

#include "passes/fusion/node_facts.hpp"
#include "passes/fusion/patterns.hpp"
#include "passes/fusion/written_form.hpp"

namespace npu::fusion {
namespace {

// x / 2 times one plus erf(x / sqrt 2), or plus tanh(sqrt(2 / pi) (x + 0.044715 x^3)), in either
// order of the products.
const std::string kErf = "erf(div(x,1.4142135624)|mul(x,0.7071067812))";
const std::string kCube = "pow(x,3)|mul(mul(x,x),x)";
const std::string kTanh = "tanh(mul(add(x,mul(" + kCube + ",0.044715)),0.7978845608))";
const std::string kSum = "add(" + kErf + "|" + kTanh + ",1)";
const std::string kGelu =
    "mul(mul(x,0.5)|div(x,2)," + kSum + ")|mul(mul(x," + kSum + "),0.5)|div(mul(x," + kSum + "),2)";

// x over the root of its mean square, to which a number may be added.
const std::string kMeanSquare = "mean(pow(x,2)|square(x)|mul(x,x))";
const std::string kRadicand = kMeanSquare + "|add(" + kMeanSquare + ")|add(" + kMeanSquare + ",_)";
const std::string kRoot = "sqrt(" + kRadicand + ")";
const std::string kNorm =
    "mul(x,rsqrt(" + kRadicand + ")|reciprocal(" + kRoot + "))|div(x," + kRoot + ")";

/// The nodes of a norm, the last one at the end; empty if there is none. `is_layer_norm` tells
/// whether x is itself less its mean.
NodeList norm_at(FusionBuilder& builder, std::int32_t n, bool& is_layer_norm) {
  WrittenForm norm(builder, Readers::kAll);
  if (!norm.matches(n, kNorm)) return {};
  const TensorId x = norm.x();
  NodeList nodes(norm.nodes().rbegin(), norm.nodes().rend());
  const std::int32_t square = nodes.front();
  const std::int32_t root = norm.nodes()[1];
  if (builder.result_elements(root) >= builder.elements(x)) return {};
  // x itself, if only the norm reads it: a cast, or x less its mean.
  const std::int32_t above = builder.producer(x);
  bool inside = above >= 0 && builder.free(above) && builder.same_device(above, n) &&
                !builder.is_output(x) && builder.node(above).outputs.size() == 1 &&
                builder.tensor(x).consumers.size() <= 2;
  if (!inside) return nodes;
  builder.for_each_consumer(
      x, [&](std::int32_t reader) { inside = inside && (reader == square || reader == n); });
  if (!inside) return nodes;
  const NodeFacts& facts = builder.facts(above);
  WrittenForm centred(builder, Readers::kAll);
  is_layer_norm = centred.matches(above, "sub(x,mean(x))");
  if (is_layer_norm) {
    nodes.insert(nodes.begin(), centred.nodes().begin(), centred.nodes().end());
  } else if (facts.kind == OpKind::kElementwise && !facts.alias &&
             builder.operands(above).size() == 1 &&
             builder.node(above).op_type.find("to") != std::string::npos) {
    nodes.insert(nodes.begin(), above);
  }
  return nodes;
}

/// Whether the nodes of an RMS norm are what a kernel computes: in one dtype, of rows along the
/// last dimension, with a number or nothing added to the mean squares.
bool is_norm_of_rows(const FusionBuilder& builder, const NodeList& nodes, TensorId x) {
  const TensorInfo& source = builder.tensor(x);
  if (!is_single(source.dtype) || source.shape.empty()) return false;
  Shape means = source.shape;
  means.back() = 1;
  return std::all_of(nodes.begin(), nodes.end(), [&](std::int32_t n) {
    const Node& node = builder.node(n);
    const TensorInfo& result = builder.result(n);
    const std::string_view name = functional_name(node.op_type);
    if (result.dtype != source.dtype) return false;
    if (name == "mean") return result.shape == means;
    if (name == "add") return node.inputs.size() == 1 && only_number(node).has_value();
    return n != nodes.back() || (node.attrs().empty() && result.shape == source.shape);
  });
}

/// Whether a product is one with the weights of rows of `shape`.
bool multiplies_rows(const FusionBuilder& builder, const Link& next, const Shape& shape) {
  const Node& node = builder.node(next.node);
  if (builder.role(next.node) != Role::kMul || node.inputs.size() != 2) return false;
  const TensorId other = node.inputs[node.inputs[0] == next.tensor ? 1 : 0];
  const TensorInfo& weight = builder.tensor(other);
  return other != next.tensor && weight.dtype == builder.result(next.node).dtype &&
         !weight.shape.empty() && weight.shape.back() == shape.back() &&
         builder.elements(other) == shape.back() && builder.result(next.node).shape == shape;
}

}  // namespace

void match_written_gelu(FusionBuilder& builder) {
  match_each(builder, "written-gelu"_pattern, [&](std::int32_t n) {
    WrittenForm gelu(builder, Readers::kNeeded);
    NodeList nodes;
    if (!gelu.matches(n, kGelu)) return nodes;
    // In float32, all of it, and with no factor in the sums.
    const DType dtype = builder.tensor(gelu.x()).dtype;
    nodes.assign(gelu.nodes().rbegin(), gelu.nodes().rend());
    const bool fits = std::all_of(nodes.begin(), nodes.end(), [&](std::int32_t each) {
      const bool scales = builder.role(each) == Role::kAdd && has_factor(builder.node(each));
      return builder.result(each).dtype == dtype && !scales;
    });
    if (!fits || !is_single(dtype)) nodes.clear();
    return nodes;
  });
}

void match_written_rms_norm(FusionBuilder& builder) {
  match_each(builder, "written-rms-norm"_pattern, [&](std::int32_t n) {
    WrittenForm norm(builder, Readers::kNeeded);
    NodeList nodes;
    if (!norm.matches(n, kNorm)) return nodes;
    nodes.assign(norm.nodes().rbegin(), norm.nodes().rend());
    if (!is_norm_of_rows(builder, nodes, norm.x())) return NodeList{};
    const Shape& shape = builder.tensor(norm.x()).shape;
    follow(builder, Readers::kNeeded, builder.most(), nodes, [&](const Link& next) {
      const NodeFacts& facts = builder.facts(next.node);
      const bool is_same = builder.result(next.node).shape == shape;
      if (facts.alias) return is_same ? Step::kPass : Step::kStop;
      return multiplies_rows(builder, next, shape) ? Step::kLast : Step::kStop;
    });
    return nodes;
  });
}

void match_norms(FusionBuilder& builder) {
  if (!builder.enabled("rms-norm"_pattern) && !builder.enabled("layer-norm"_pattern)) return;
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    if (!builder.free(n)) continue;
    bool is_layer_norm = false;
    NodeList nodes = norm_at(builder, n, is_layer_norm);
    const Pattern pattern = is_layer_norm ? "layer-norm"_pattern : "rms-norm"_pattern;
    if (nodes.empty() || !builder.enabled(pattern, n) || !builder.fits(nodes.size())) continue;
    follow(builder, Readers::kAll, builder.most(), nodes,
           [&](const Link& next) { return epilogue_step(builder, next); });
    builder.add_group(std::move(nodes), pattern);
  }
}

}  // namespace npu::fusion
