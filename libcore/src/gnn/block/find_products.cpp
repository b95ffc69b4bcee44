// SPDX-License-Identifier: Apache-2.0
// Finds the products with weights of a block, for multiply_rows (row_products.cpp).
//
// A linear layer or a product of two matrices whose right one is a weight, or weights below each
// other, as linear_before_aggregate makes them. Its bias is part of it, and so are additions and a
// relu that alone read it, as they are of a sum over edges.
#include "gnn/block/find_products.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gnn/block/block_steps.hpp"
#include "gnn/model/aggregations.hpp"
#include "support/json_fields.hpp"

namespace npu::gnn {
namespace {

class ProductFinder {
 public:
  ProductFinder(const Graph& graph, const std::map<std::string, Tensor>& weights,
                PackedWeights& packed, std::set<NodeId> open)
      : graph_(graph),
        matcher_(graph),
        weights_(weights),
        packed_(packed),
        open_(std::move(open)) {}

  void add_to(OwnKernels& own) {
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      if (!open_.contains(id)) continue;
      auto product = product_at(graph_.node(id));
      if (!product) continue;
      open_.erase(id);
      while (!product->relu && absorb_reader(*product)) {
      }
      const std::int32_t last = graph_.tensor(product->result).producer.value;
      own.insert_or_assign(last, std::move(*product));
    }
  }

 private:
  std::optional<Product> product_at(const Node& node) const {
    const FusionRole role = fusion_role(node.op_type);
    if (!is_matrix_product(role)) return std::nullopt;
    const bool is_linear = role == FusionRole::kLinear;
    const bool has_bias_first = !is_linear && node.inputs.size() > 2;
    const std::size_t left = has_bias_first ? 1 : 0;
    if (node.inputs.size() < left + 2 || node.attrs().size() > 0) return std::nullopt;
    const TensorInfo& rows = graph_.tensor(node.inputs[left]);
    const TensorInfo& result = graph_.tensor(node.outputs[0]);
    if (rows.dtype != DType::kFloat32 || result.dtype != DType::kFloat32 || rows.shape.empty() ||
        rows.kind == TensorKind::kWeight) {
      return std::nullopt;
    }
    std::vector<WeightMatrix> matrices;
    if (!collect(node.inputs[left + 1], !is_linear, matrices)) return std::nullopt;
    Product product;
    product.result = node.outputs[0];
    product.rows = matcher_.through_first_rows(node.inputs[left]);
    if (is_linear ? node.inputs.size() > 2 : has_bias_first) {
      const auto bias = bias_at(node.inputs[is_linear ? 2 : 0], result.shape);
      if (!bias) return std::nullopt;
      product.bias = *bias;
    }
    product.weights = packed_.take(matrices);
    return product;
  }

  const Tensor* weight(const TensorInfo& info) const {
    if (info.kind != TensorKind::kWeight || info.dtype != DType::kFloat32) return nullptr;
    const auto found = weights_.find(info.weight_key);
    const bool fits = found != weights_.end() && found->second.shape() == info.shape &&
                      found->second.dtype() == DType::kFloat32;
    return fits ? &found->second : nullptr;
  }

  // The weights that an operand is; false if it is something else.
  bool collect(TensorId id, bool is_transposed, std::vector<WeightMatrix>& matrices) const {
    const TensorInfo& info = graph_.tensor(id);
    if (info.shape.size() != 2) return false;
    if (const Tensor* values = weight(info)) {
      matrices.push_back({*values, is_transposed});
      return true;
    }
    const Node* node = matcher_.producer(id, FusionRole::kCat);
    if (is_transposed || node == nullptr || member_integer(node->attrs(), "dim") != 0) return false;
    return std::all_of(node->inputs.begin(), node->inputs.end(),
                       [&](TensorId each) { return collect(each, false, matrices); });
  }

  // A weight with one value for each column.
  std::optional<Tensor> bias_at(TensorId id, const Shape& shape) const {
    const TensorInfo& info = graph_.tensor(id);
    const Tensor* values = weight(info);
    if (values == nullptr || info.shape != Shape{shape.back()}) return std::nullopt;
    return *values;
  }

  // Takes the only reader of the product along; false if there is none that can be.
  bool absorb_reader(Product& product) {
    const Node* reader = matcher_.only_reader(product.result);
    if (reader == nullptr || reader->outputs.size() != 1) return false;
    const TensorInfo& result = graph_.tensor(reader->outputs[0]);
    if (!open_.contains(result.producer) || result.dtype != DType::kFloat32) return false;
    const FusionRole role = fusion_role(reader->op_type);
    if (role == FusionRole::kRelu) {
      product.relu = true;
    } else if (role == FusionRole::kAdd) {
      if (!absorb_addition(*reader, product)) return false;
    } else if (!matcher_.is_alias(*reader)) {
      return false;
    }
    open_.erase(result.producer);
    product.result = reader->outputs[0];
    return true;
  }

  bool absorb_addition(const Node& addition, Product& product) const {
    if (addition.inputs.size() != 2 || addition.attrs().size() > 0 || product.addend.valid()) {
      return false;
    }
    const TensorId other = addition.inputs[addition.inputs[0] == product.result ? 1 : 0];
    const TensorInfo& info = graph_.tensor(other);
    const Shape& shape = graph_.tensor(product.result).shape;
    if (info.kind == TensorKind::kWeight) {
      const auto bias = bias_at(other, shape);
      if (!bias || product.bias.bytes() > 0) return false;
      product.bias = *bias;
      return true;
    }
    if (info.shape != shape || info.dtype != DType::kFloat32) return false;
    product.addend = other;
    return true;
  }

  const Graph& graph_;
  const EdgeMatcher matcher_;
  const std::map<std::string, Tensor>& weights_;
  PackedWeights& packed_;
  std::set<NodeId> open_;  // that no own kernel does
};

}  // namespace

void add_products(const Graph& graph, const std::map<std::string, Tensor>& weights,
                  PackedWeights& packed, OwnKernels& own) {
  ProductFinder(graph, weights, packed, nodes_in_programs(graph, own)).add_to(own);
}

}  // namespace npu::gnn
