// SPDX-License-Identifier: Apache-2.0
// Convolutions, products of matrices and attention as ONNX has them.
//
// A linear layer on a matrix is a Gemm; on more dimensions it is a MatMul, whose constant matrix is
// written transposed, and an Add, which ONNX Runtime makes one product of integers. Attention is
// written out, since few programs know it as one op.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "export/export_rules.hpp"
#include "export/integer_weights.hpp"
#include "ops/op_name.hpp"

namespace npu::onnx_export {
namespace {

void require_batch(const NodeExport& node, std::size_t spatial) {
  if (node.first_info().shape.size() != spatial + 2) {
    NodeExport::refuse("an operand of " + std::to_string(node.first_info().shape.size()) +
                       " dimensions, where ONNX has a batch");
  }
}

/// Begins, then ends.
OnnxInts both_pads(const OnnxInts& begins, const OnnxInts& ends) {
  OnnxInts pads = begins;
  pads.insert(pads.end(), ends.begin(), ends.end());
  return pads;
}

OnnxInts conv_pads(const NodeExport& node, const OnnxInts& kernel, const OnnxInts& dilation) {
  const BoundArgument* padding = node.args.find("padding");
  if (padding == nullptr || !padding->value.is_string()) {
    const OnnxInts pads = node.args.integers("padding");
    return both_pads(pads, pads);
  }
  OnnxInts begins(kernel.size(), 0);
  OnnxInts ends(kernel.size(), 0);
  if (node.args.string("padding") == "same") {
    for (std::size_t d = 0; d < kernel.size(); ++d) {
      const std::int64_t all = dilation[d] * (kernel[d] - 1);
      begins[d] = all / 2;
      ends[d] = all - begins[d];
    }
  }
  return both_pads(begins, ends);
}

/// A product with its constants, and with the norm behind it if those are integers.
void finish_product(NodeExport& node, const std::string& op, std::int64_t axis,
                    const OnnxAttributes& attributes) {
  const TensorId operand = *node.args.tensor("input");
  const TensorId weight = node.id_of("weight");
  const auto integers = channel_integers(node, weight, axis);
  if (!integers || integers->axis != axis) {
    std::vector<std::string> inputs{node.value(operand), node.value(weight)};
    if (std::string bias = node.optional_value("bias"); !bias.empty()) inputs.push_back(bias);
    return node.finish(op, std::move(inputs), attributes);
  }
  const auto norm = norm_behind(node);
  const ProductConstants constants =
      integer_product(node, *integers, operand, norm ? &*norm : nullptr, false);
  std::vector<std::string> inputs{node.value(operand), constants.weight};
  if (!constants.bias.empty()) inputs.push_back(constants.bias);
  node.finish_for(norm ? norm->node : node.id(), op, std::move(inputs), attributes);
}

/// x * transpose(weight) + bias for any number of dimensions.
void finish_wide_linear(NodeExport& node) {
  const TensorId operand = *node.args.tensor("input");
  const TensorId weight = node.id_of("weight");
  const auto bias = node.args.tensor("bias");
  std::string matrix;
  std::string offset = bias ? node.value(*bias) : std::string();
  if (const auto integers = channel_integers(node, weight, 0); integers && integers->axis == 0) {
    ProductConstants constants = integer_product(node, *integers, operand, nullptr, true);
    matrix = std::move(constants.weight);
    // ONNX Runtime computes the product in float32 if the bias is not one of integers.
    if (!constants.bias.empty()) offset = std::move(constants.bias);
  } else if (const Tensor* known = node.known(weight)) {
    matrix =
        node.onnx.constant(node.graph.tensor(weight).name + "_of_file", transposed_matrix(*known));
  } else {
    matrix = node.emit("Transpose", {node.value(weight)}, {{"perm", OnnxInts{1, 0}}});
  }
  if (offset.empty()) return node.finish("MatMul", {node.value(operand), matrix});
  node.finish("Add", {node.emit("MatMul", {node.value(operand), matrix}), offset});
}

/// What is added to scores: nothing, a mask of floats, one made of a mask of bools, or the causal
/// one.
std::string score_mask(NodeExport& node, DType dtype) {
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  if (node.args.boolean("is_causal")) {
    const Shape& query = node.info("query").shape;
    const Shape& key = node.info("key").shape;
    const std::int64_t rows = query[query.size() - 2];
    const std::int64_t columns = key[key.size() - 2];
    const std::string what = "causal_mask " + std::to_string(rows) + "x" + std::to_string(columns) +
                             " " + std::string(dtype_name(dtype));
    return node.onnx.once(what, [&] {
      Tensor mask(DType::kFloat32, {rows, columns});
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = r + 1; c < columns; ++c) {
          mask.as_mutable<float>()[r * columns + c] = static_cast<float>(kHidden);
        }
      }
      const std::string name = node.onnx.constant("causal_mask", mask);
      return dtype == DType::kFloat32 ? name : node.emit_cast(name, dtype);
    });
  }
  const auto mask = node.args.tensor("attn_mask");
  if (!mask) return {};
  if (node.graph.tensor(*mask).dtype != DType::kBool) return node.value_as(*mask, dtype);
  const std::string shown = node.value(*mask);
  return node.onnx.once("score_mask " + shown + " " + std::string(dtype_name(dtype)), [&] {
    return node.emit("Where", {shown, node.scalar(0, dtype), node.scalar(kHidden, dtype)});
  });
}

/// Whether a constant mask leaves each query a key.
bool shows_each_row(const Tensor* mask) {
  if (mask == nullptr || mask->shape().empty()) return false;
  const std::int64_t columns = mask->shape().back();
  const auto shows = [&](std::int64_t i) {
    if (mask->dtype() == DType::kBool) return mask->data()[i] != std::byte{0};
    return mask->dtype() == DType::kFloat32 &&
           mask->as<float>()[i] != -std::numeric_limits<float>::infinity();
  };
  for (std::int64_t begin = 0; begin < mask->element_count(); begin += columns) {
    bool is_shown = false;
    for (std::int64_t c = 0; c < columns && !is_shown; ++c) is_shown = shows(begin + c);
    if (!is_shown) return false;
  }
  return true;
}

/// The weights of scores to which a mask was added: 0 where it hides all keys of a query, whose
/// softmax would be 0 / 0.
std::string masked_weights(NodeExport& node, const std::string& weights, const std::string& mask,
                           DType dtype) {
  const auto id = node.args.tensor("attn_mask");
  if (node.args.boolean("is_causal") || shows_each_row(node.known(*id))) return weights;
  const std::string hidden = node.onnx.once("hidden_rows " + mask, [&] {
    const std::string most =
        node.emit("ReduceMax", {mask, node.onnx.integers({-1})}, {{"keepdims", std::int64_t{1}}});
    const double kHidden = -std::numeric_limits<double>::infinity();
    return node.emit("Equal", {most, node.scalar(kHidden, dtype)});
  });
  return node.emit("Where", {hidden, node.scalar(0, dtype), weights});
}

}  // namespace

void export_conv(NodeExport& node) {
  const auto spatial = static_cast<std::size_t>(spatial_rank(node.node().op_type));
  require_batch(node, spatial);
  const Shape& weight = node.info("weight").shape;
  const OnnxInts kernel(weight.begin() + 2, weight.end());
  const OnnxInts dilation = node.args.integers("dilation");
  finish_product(node, "Conv", 0,
                 {{"dilations", dilation},
                  {"group", node.args.integer("groups")},
                  {"kernel_shape", kernel},
                  {"pads", conv_pads(node, kernel, dilation)},
                  {"strides", node.args.integers("stride")}});
}

void export_conv_transpose(NodeExport& node) {
  const auto spatial = static_cast<std::size_t>(spatial_rank(node.node().op_type));
  require_batch(node, spatial);
  const Shape& weight = node.info("weight").shape;
  const OnnxInts pads = node.args.integers("padding");
  const std::int64_t groups = node.args.integer("groups");
  const OnnxAttributes attributes{{"dilations", node.args.integers("dilation")},
                                  {"group", groups},
                                  {"kernel_shape", OnnxInts(weight.begin() + 2, weight.end())},
                                  {"output_padding", node.args.integers("output_padding")},
                                  {"pads", both_pads(pads, pads)},
                                  {"strides", node.args.integers("stride")}};
  if (groups == 1) return finish_product(node, "ConvTranspose", 1, attributes);
  std::vector<std::string> inputs{node.value("input"), node.value("weight")};
  if (std::string bias = node.optional_value("bias"); !bias.empty()) inputs.push_back(bias);
  node.finish("ConvTranspose", std::move(inputs), attributes);
}

void export_linear(NodeExport& node) {
  const std::size_t rank = node.first_info().shape.size();
  if (rank < 2 || node.info("weight").shape.size() != 2) {
    NodeExport::refuse("an operand of less than two dimensions");
  }
  if (rank == 2) return finish_product(node, "Gemm", 0, {{"transB", std::int64_t{1}}});
  finish_wide_linear(node);
}

void export_matmul(NodeExport& node) {
  const std::vector<TensorId>& inputs = node.node().inputs;
  node.finish("MatMul", {node.value(inputs.at(0)), node.value(inputs.at(1))});
}

void export_addmm(NodeExport& node) {
  node.finish("Gemm", {node.value("mat1"), node.value("mat2"), node.value("self")},
              {{"alpha", static_cast<float>(node.args.number("alpha"))},
               {"beta", static_cast<float>(node.args.number("beta"))}});
}

void export_einsum(NodeExport& node) {
  std::string equation = node.args.string("equation");
  std::erase(equation, ' ');
  std::vector<std::string> inputs;
  for (const TensorId id : node.args.tensors("tensors")) inputs.push_back(node.value(id));
  node.finish("Einsum", std::move(inputs), {{"equation", std::move(equation)}});
}

void export_attention(NodeExport& node) {
  const Shape& query = node.info("query").shape;
  const Shape& key = node.info("key").shape;
  if (node.args.number("dropout_p") != 0) NodeExport::refuse("a dropout");
  if (node.args.boolean("enable_gqa")) NodeExport::refuse("heads that share keys");
  if (query.size() < 2 || key.size() != query.size()) NodeExport::refuse("operands of these ranks");
  const DType dtype = node.result().dtype;
  const double scale = node.args.is_none("scale") ? 1 / std::sqrt(static_cast<double>(query.back()))
                                                  : node.args.number("scale");
  OnnxInts perm(key.size());
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const std::string keys = node.emit("Transpose", {node.value("key")}, {{"perm", perm}});
  std::string scores = node.emit("MatMul", {node.value("query"), keys});
  scores = node.emit("Mul", {scores, node.scalar(scale, dtype)});
  const std::string mask = score_mask(node, dtype);
  if (!mask.empty()) scores = node.emit("Add", {scores, mask});
  std::string weights = node.emit("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  if (!mask.empty()) weights = masked_weights(node, weights, mask, dtype);
  node.finish("MatMul", {weights, node.value("value")});
}

}  // namespace npu::onnx_export
