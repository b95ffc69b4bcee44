// SPDX-License-Identifier: Apache-2.0
// What calibration says of the products with weights: factors for the channels that they read, and
// corrections of their biases. The factors are those of a tensor, for all products that read it at
// once; where a weight has some already, in another document, they are these. O(elements of the
// weights).
#include "profile/product_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "quant/channel_extremes.hpp"
#include "quant/weight_operand.hpp"

namespace npu {
namespace {

/// Below this, what is gained is not worth the multiplications.
constexpr double kLeastGain = 1.5;

/// Whether a node multiplies this tensor with a weight.
bool multiplies(const Graph& graph, NodeId reader, TensorId id) {
  const Node& node = graph.node(reader);
  const auto weight = weight_operand(graph, node);
  return weight && node.inputs[weight->data()] == id;
}

/// That of the weight which a product reads.
const std::string& weight_name(const Graph& graph, const Node& product) {
  return graph.tensor(weight_operand(graph, product)->tensor).name;
}

class ProductMeter {
 public:
  ProductMeter(const Graph& graph, const std::vector<Tensor>& weights,
               const std::vector<ChannelMoments>& moments, const WeightFactors& known,
               TensorRanges& ranges)
      : graph_(graph), weights_(weights), moments_(moments), known_(known), ranges_(ranges) {}

  void run() {
    for (std::size_t i = 0; i < ranges_.tensors.size(); ++i) {
      if (moments_[i].count > 0) add_readers(ranges_.tensors[i], moments_[i]);
    }
    std::stable_sort(ranges_.products.begin(), ranges_.products.end(),
                     [&](const ProductRange& a, const ProductRange& b) {
                       return graph_.find_node(a.node).value < graph_.find_node(b.node).value;
                     });
    ranges_.index();
  }

 private:
  void add_readers(TensorRange& range, const ChannelMoments& moments) {
    const TensorId id = graph_.find_tensor(range.name);
    std::vector<NodeId> nodes;
    std::vector<ProductWeight> weights;
    for (const NodeId reader : graph_.tensor(id).consumers) {
      if (!multiplies(graph_, reader, id) || !seen_.insert(reader).second) continue;
      const auto weight = weight_of(graph_.node(reader), range);
      if (!weight) continue;
      nodes.push_back(reader);
      weights.push_back(*weight);
    }
    if (nodes.empty()) return;
    double gain = 1;
    std::vector<float> factors;
    if (const ChannelFactors* known = known_factors(nodes)) {
      factors = known->factors;
      gain = known->gain;
    } else {
      factors = choose_factors({&range.channels, &moments}, weights, gain);
      if (gain < kLeastGain || !(gain <= TensorRange::kMostGain)) factors.clear();
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      add_product(graph_.node(nodes[i]).name, weights[i], factors, moments);
    }
    if (factors.empty()) return;
    range.factors = std::move(factors);
    range.gain = gain;
  }

  /// Null if there are none for the weight of any of the products.
  const ChannelFactors* known_factors(const std::vector<NodeId>& products) const {
    for (const NodeId product : products) {
      const auto found = known_.find(weight_name(graph_, graph_.node(product)));
      if (found != known_.end()) return &found->second;
    }
    return nullptr;
  }

  /// Nothing if its channels are not those of the range.
  std::optional<ProductWeight> weight_of(const Node& node, const TensorRange& range) {
    const WeightOperand operand = *weight_operand(graph_, node);
    const Tensor& tensor = weights_[index_of(operand.tensor)];
    if (tensor.dtype() != DType::kFloat32 || tensor.bytes() == 0) return std::nullopt;
    auto weight = product_weight(graph_, node, range.shape, range.channels.axis);
    if (weight)
      weight->values = {tensor.as<float>(), static_cast<std::size_t>(tensor.element_count())};
    return weight;
  }

  void add_product(const std::string& node, const ProductWeight& weight,
                   const std::vector<float>& factors, const ChannelMoments& moments) {
    const auto finite_or_none = [](std::vector<float> list) {
      const bool is_finite =
          std::all_of(list.begin(), list.end(), [](float each) { return std::isfinite(each); });
      return is_finite ? list : std::vector<float>{};
    };
    ProductRange product;
    product.node = node;
    product.correction =
        finite_or_none(bias_correction(weight, {}, weight_extremes(weight, {}), moments));
    if (!factors.empty()) {
      ChannelExtremes extremes = weight_extremes(weight, factors);
      product.factored_correction =
          finite_or_none(bias_correction(weight, factors, extremes, moments));
      if (product.factored_correction.size() == extremes.low.size()) {
        product.factored_low = std::move(extremes.low);
        product.factored_high = std::move(extremes.high);
      }
    }
    ranges_.products.push_back(std::move(product));
  }

  const Graph& graph_;
  const std::vector<Tensor>& weights_;
  const std::vector<ChannelMoments>& moments_;
  const WeightFactors& known_;
  TensorRanges& ranges_;
  std::set<NodeId> seen_;
};

}  // namespace

bool is_read_by_product(const Graph& graph, TensorId id) {
  const std::vector<NodeId>& readers = graph.tensor(id).consumers;
  return std::any_of(readers.begin(), readers.end(),
                     [&](NodeId reader) { return multiplies(graph, reader, id); });
}

bool is_read_by_matrix_product(const Graph& graph, TensorId id) {
  const std::vector<NodeId>& readers = graph.tensor(id).consumers;
  return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
    return multiplies(graph, reader, id) &&
           fusion_role(graph.node(reader).op_type) != FusionRole::kConv;
  });
}

void add_products(const Graph& graph, const std::vector<Tensor>& weights,
                  const std::vector<ChannelMoments>& moments, const WeightFactors& known,
                  TensorRanges& ranges) {
  ProductMeter(graph, weights, moments, known, ranges).run();
}

WeightFactors weight_factors(const Graph& graph, const TensorRanges& ranges) {
  WeightFactors factors;
  for (const Node& node : graph.nodes()) {
    const auto weight = weight_operand(graph, node);
    if (!weight) continue;
    const TensorRange* range = ranges.find(graph.tensor(node.inputs[weight->data()]).name);
    if (range == nullptr) continue;
    factors.emplace(weight_name(graph, node), ChannelFactors{range->factors, range->gain});
  }
  return factors;
}

}  // namespace npu
