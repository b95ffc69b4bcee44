// SPDX-License-Identifier: Apache-2.0
// Squeeze and excitation: a tensor times a gate that layers with activations compute from what is
// pooled of it.
//
// The walk goes from the product up to the pooling; what it went through is then held to the
// limits. Only the product has readers outside, so that the block is convex. O(nodes), since a walk
// is bounded.
#include <algorithm>

#include "passes/fusion/node_facts.hpp"
#include "passes/fusion/patterns.hpp"

namespace npu::fusion {
namespace {

/// What a gate may be made of.
struct GateLimits {
  /// Means of planes, a pointwise convolution, an activation, another convolution and a sigmoid;
  /// else any pooling, layers, activations and element-wise ops.
  bool as_kernel = false;
  Readers readers = Readers::kAll;
  std::int64_t channels = 1;  ///< a multiple of so many
};
constexpr GateLimits kAnyGate{};
// Vectors run along the channels.
constexpr GateLimits kKernelGate{.as_kernel = true, .readers = Readers::kNeeded, .channels = 8};

class GateMatch {
 public:
  GateMatch(FusionBuilder& builder, const GateLimits& limits, std::int32_t product)
      : builder_(builder), limits_(limits), product_(product) {}

  /// The nodes, the product at the end; empty if it is no gate.
  NodeList match() {
    const std::span<const TensorId> read = builder_.operands(product_);
    if (builder_.role(product_) != Role::kMul || read.size() != 2) return {};
    for (std::size_t side = 0; side < 2; ++side) {
      nodes_.clear();
      const bool found = may_gate(read[side], read[1 - side]) && climb(read[side], read[1 - side]);
      if (!found) continue;
      nodes_.push_back(product_);
      return std::move(nodes_);
    }
    return {};
  }

 private:
  Role role(std::int32_t n) const { return builder_.role(n); }
  const TensorInfo& info(TensorId id) const { return builder_.tensor(id); }

  /// By their shapes and dtypes.
  bool may_gate(TensorId gate, TensorId features) const {
    if (!limits_.as_kernel) {
      const std::int64_t elements = builder_.result_elements(product_);
      return builder_.elements(gate) < elements && builder_.elements(features) == elements;
    }
    const TensorInfo& tensor = info(features);
    return tensor.shape.size() == 4 && tensor.shape[1] % limits_.channels == 0 &&
           (is_single(tensor.dtype) || tensor.dtype == DType::kBFloat16) &&
           info(gate).shape == squeezed(tensor.shape) && info(gate).dtype == tensor.dtype &&
           builder_.node(product_).outputs.size() == 1;
  }

  static Shape squeezed(const Shape& shape) { return {shape[0], shape[1], 1, 1}; }

  /// From the gate up along first operands to a pooling of the features.
  bool climb(TensorId gate, TensorId features) {
    constexpr std::size_t kMostNodes = 32;
    std::size_t layers = 0;
    bool is_gated = false;
    for (std::int32_t reader = product_; nodes_.size() < kMostNodes; reader = nodes_.back()) {
      const std::int32_t n = builder_.above(gate, reader, limits_.readers);
      if (n < 0 || builder_.operands(n).empty()) return false;
      gate = builder_.operands(n).front();
      nodes_.push_back(n);
      if (role(n) == Role::kGlobalPool || role(n) == Role::kGlobalMaxPool ||
          role(n) == Role::kMean) {
        return layers > 0 && is_gated && gate == features && (!limits_.as_kernel || is_of_kernel());
      }
      const bool is_layer = is_product(role(n));
      if (!is_layer && !builder_.facts(n).keeps_elements && !builder_.is_epilogue_op(n, gate)) {
        return false;
      }
      layers += is_layer ? 1 : 0;
      is_gated = is_gated || is_activation(role(n));
    }
    return false;
  }

  // ---- what a kernel computes ----

  bool is_of_kernel() const {
    if (nodes_.size() != 5) return false;
    const Role gate = role(nodes_[0]);
    const Role between = role(nodes_[2]);
    const Shape& features = info(builder_.node(nodes_[4]).inputs.front()).shape;
    return (gate == Role::kSigmoid || gate == Role::kHardSigmoid) && reads_one(nodes_[0]) &&
           is_pointwise_layer(nodes_[1]) &&
           (between == Role::kRelu || between == Role::kSilu || between == Role::kHardSwish) &&
           reads_one(nodes_[2]) && is_pointwise_layer(nodes_[3]) && is_plane_mean(nodes_[4]) &&
           info(builder_.node(nodes_[4]).outputs.front()).shape == squeezed(features);
  }

  bool reads_one(std::int32_t n) const { return builder_.node(n).inputs.size() == 1; }

  bool is_pointwise_layer(std::int32_t n) const {
    const auto facts = convolution_facts(builder_, n);
    return facts && facts->groups == 1 && facts->weight[2] == 1 && facts->weight[3] == 1 &&
           facts->weight[1] == facts->source[1] && facts->result[1] == facts->weight[0] &&
           facts->padding[0] == 0 && facts->padding[1] == 0 && facts->source[2] == 1 &&
           facts->source[3] == 1;
  }

  bool is_plane_mean(std::int32_t n) const {
    const Node& node = builder_.node(n);
    if (role(n) == Role::kGlobalPool) return reads_one(n);  // by its result's shape
    const Json* dims = find_member(node.attrs(), "dim");
    const Json* keeps = find_member(node.attrs(), "keepdim");
    return role(n) == Role::kMean && reads_one(n) && keeps != nullptr && *keeps == true &&
           dims != nullptr &&
           (*dims == Json{2, 3} || *dims == Json{-2, -1} || *dims == Json{-1, -2});
  }

  FusionBuilder& builder_;
  const GateLimits& limits_;
  std::int32_t product_;
  NodeList nodes_;
};

}  // namespace

void match_gates(FusionBuilder& builder, Pattern pattern) {
  const GateLimits& limits = pattern == "channel-gate"_pattern ? kKernelGate : kAnyGate;
  match_each(builder, pattern,
             [&](std::int32_t n) { return GateMatch(builder, limits, n).match(); });
}

}  // namespace npu::fusion
