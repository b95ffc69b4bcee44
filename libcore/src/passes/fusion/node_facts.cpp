// SPDX-License-Identifier: Apache-2.0
// What several fusion patterns ask about a node. O(1) each.
#include "passes/fusion/node_facts.hpp"

#include <algorithm>

#include "npu/support/ids.hpp"
#include "ops/schema.hpp"

namespace npu::fusion {
namespace {

constexpr std::size_t kMostAliases = 16;  // between a product and its weight

const TensorInfo& info_of(const FusionBuilder& builder, TensorId id) { return builder.tensor(id); }

const Shape& shape_of(const FusionBuilder& builder, TensorId id) {
  return info_of(builder, id).shape;
}

}  // namespace

bool is_weight(const FusionBuilder& builder, TensorId id) {
  return info_of(builder, id).kind == TensorKind::kWeight;
}

bool has_known_operands(const FusionBuilder& builder, const Node& node) {
  return std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                     [&](TensorId id) { return is_weight(builder, id); });
}

bool is_factor(const FusionBuilder& builder, std::int32_t n) {
  const Node& node = builder.node(n);
  const Role role = builder.role(n);
  return (role == Role::kMul || role == Role::kDiv) && node.inputs.size() == 1 &&
         node.outputs.size() == 1;
}

bool keeps_row_major(const FusionBuilder& builder, std::int32_t n) {
  const Node& node = builder.node(n);
  const Role role = builder.role(n);
  if (role != Role::kSameOrder && role != Role::kPermute) return false;
  if (node.inputs.empty() || node.outputs.size() != 1) return false;
  const TensorInfo& from = info_of(builder, node.inputs.front());
  const TensorInfo& to = info_of(builder, node.outputs.front());
  if (from.dtype != to.dtype || from.bytes() != to.bytes()) return false;
  if (role == Role::kSameOrder) return true;
  // A permutation that only moves dimensions of 1 leaves the others in order: the shapes without
  // ones are equal, and no two of their extents are, so that none can have changed places.
  const auto without_ones = [](Shape shape) {
    std::erase(shape, 1);
    return shape;
  };
  Shape before = without_ones(from.shape);
  if (before != without_ones(to.shape)) return false;
  std::sort(before.begin(), before.end());
  return std::adjacent_find(before.begin(), before.end()) == before.end();
}

bool ConvolutionFacts::is_pointwise() const {
  const auto all_are = [](const std::vector<std::int64_t>& values, std::int64_t value) {
    return std::all_of(values.begin(), values.end(), [&](auto each) { return each == value; });
  };
  return weight[2] == 1 && weight[3] == 1 && groups == 1 && weight[1] == source[1] &&
         all_are(stride, 1) && all_are(padding, 0);
}

std::optional<ConvolutionFacts> convolution_facts(const FusionBuilder& builder, std::int32_t n) {
  const Node& node = builder.node(n);
  const Json* mode = find_member(node.json, "align_mode");
  if (builder.role(n) != Role::kConv || node.inputs.size() < 2 || node.outputs.size() != 1 ||
      (mode != nullptr && *mode == "NALIGN") || !is_weight(builder, node.inputs[1])) {
    return std::nullopt;
  }
  ConvolutionFacts facts;
  facts.source = info_of(builder, node.inputs[0]).shape;
  facts.weight = info_of(builder, node.inputs[1]).shape;
  facts.result = info_of(builder, node.outputs.front()).shape;
  if (facts.source.size() != 4 || facts.weight.size() != 4 || facts.result.size() != 4) {
    return std::nullopt;
  }
  try {
    const BoundNode bound(builder.graph(), node, find_op(node.op_type)->schema);
    const bool says = bound.find("transposed") != nullptr;
    if (says ? bound.boolean("transposed") : bound.find("output_padding") != nullptr) {
      return std::nullopt;
    }
    const auto spatial = [&](std::string_view argument) {
      std::vector<std::int64_t> values = bound.integers(argument);
      if (values.size() == 1) values.assign(2, values.front());
      return values;
    };
    facts.stride = spatial("stride");
    facts.padding = spatial("padding");  // padding by name is left to the general convolution
    facts.dilation = spatial("dilation");
    facts.groups = bound.integer("groups");
  } catch (const Error&) {
    return std::nullopt;  // the backend that lowers the node says what is wrong with it
  }
  const bool complete =
      facts.stride.size() == 2 && facts.padding.size() == 2 && facts.dilation.size() == 2;
  return complete ? std::optional(facts) : std::nullopt;
}

bool is_projection(const FusionBuilder& builder, std::int32_t n) {
  if (!is_matrix_product(builder.role(n))) return false;
  const std::span<const TensorId> read = builder.operands(n);
  for (std::size_t i = 1; i < read.size(); ++i) {
    TensorId id = read[i];
    for (std::size_t step = 0; step < kMostAliases; ++step) {
      if (builder.tensor(id).kind == TensorKind::kWeight) return true;
      const std::int32_t above = builder.producer(id);
      if (above < 0 || !builder.facts(above).alias || builder.operands(above).empty()) break;
      id = builder.operands(above).front();
    }
  }
  return false;
}

// One filter per channel.
bool is_depthwise(const FusionBuilder& builder, std::int32_t n) {
  const std::span<const TensorId> read = builder.operands(n);
  if (builder.role(n) != Role::kConv || read.size() < 2) return false;
  const Shape& input = shape_of(builder, read[0]);
  const Shape& weight = shape_of(builder, read[1]);
  return input.size() > 2 && weight.size() == input.size() && weight[1] == 1 && input[1] > 1 &&
         weight[0] % input[1] == 0;
}

// A filter of one point that reads all channels, with stride 1.
bool is_pointwise(const FusionBuilder& builder, std::int32_t n) {
  const std::span<const TensorId> read = builder.operands(n);
  if (builder.role(n) != Role::kConv || read.size() < 2 || builder.node(n).outputs.empty()) {
    return false;
  }
  const Shape& input = shape_of(builder, read[0]);
  const Shape& weight = shape_of(builder, read[1]);
  const Shape& result = shape_of(builder, builder.node(n).outputs.front());
  if (input.size() < 3 || weight.size() != input.size() || result.size() != input.size()) {
    return false;
  }
  for (std::size_t axis = 2; axis < input.size(); ++axis) {
    if (weight[axis] != 1 || result[axis] != input[axis]) return false;
  }
  return weight[1] == input[1];
}

bool is_kernel_anchor(const FusionBuilder& builder, std::int32_t n) {
  const Role role = builder.role(n);
  return (is_product(role) || role == Role::kBatchNorm) && builder.free(n) && !builder.unused(n) &&
         !builder.node(n).inputs.empty() && builder.node(n).outputs.size() == 1;
}

bool is_grown(FusionBuilder& builder, std::int32_t g, bool of_kernels) {
  if (g < 0) return false;
  const Group& group = builder.group(g);
  return group.anchor >= 0 && !group.nodes.empty() && is_of_kernels(group.pattern) == of_kernels;
}

}  // namespace npu::fusion
