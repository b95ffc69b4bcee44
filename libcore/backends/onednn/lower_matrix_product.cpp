// SPDX-License-Identifier: Apache-2.0
// Which linear layers and convolutions of one by one are computed by the product of matrices of our
// own, and how.
//
// One step of Strassen's algorithm takes an eighth of the multiplications away and adds sums of
// parts of both factors and of the result. They take a share of the time that falls with the
// columns, with k and with the rows of a task; the limits are rounded from measurements, and depend
// on the shape alone.
#include <algorithm>

#include "convolution.hpp"
#include "lowering.hpp"
#include "matrix_product.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::size_t kMaximumOperands = 8;
constexpr std::int64_t kLeastRows = 32;  // fewer are bound by the weights' way from memory
constexpr std::int64_t kLeastFastInner = 512;
constexpr std::int64_t kLeastFastColumns = 256;
constexpr std::int64_t kLeastNormInner = 256;
constexpr std::int64_t kMostNormRows = 1024;

bool is_fast(const MatrixProduct& call) {
  return call.inner % (2 * kLanes) == 0 && call.columns % (4 * kLanes) == 0 &&
         call.inner >= kLeastFastInner && call.columns >= kLeastFastColumns;
}

/// The kernel can compute it.
bool supports(const Lowering& lowering, const MatrixProduct& call) {
  return lowering.machine().wide_vectors && MatrixProduct::is_available() &&
         call.inner % kLanes == 0 && call.columns % kLanes == 0;
}

/// And takes less time than oneDNN.
bool suits(const Lowering& lowering, const MatrixProduct& call) {
  return supports(lowering, call) && call.rows >= kLeastRows && is_fast(call);
}

/// The same where a pass over the source is saved.
bool suits_norm(const Lowering& lowering, const MatrixProduct& call) {
  return supports(lowering, call) && (call.inner >= kLeastNormInner || call.rows <= kMostNormRows);
}

/// The product that a convolution of one by one is.
MatrixProduct pointwise(const Shape& target, std::int64_t source_channels) {
  MatrixProduct kernel;
  kernel.images = target[0];
  for (std::size_t i = 2; i < target.size(); ++i) kernel.rows *= target[i];
  kernel.inner = source_channels;
  kernel.columns = target[1];
  kernel.source = {kernel.rows * kernel.inner, kLanes, kernel.rows * kLanes};
  kernel.target = {kernel.rows * kernel.columns, kLanes, kernel.rows * kLanes};
  return kernel;
}

bool is_pointwise(const Shape& weight, const Spatial& spatial, std::int64_t groups) {
  return std::all_of(weight.begin() + 2, weight.end(), [](std::int64_t n) { return n == 1; }) &&
         groups == 1 && all_are(spatial.stride, 1) && all_are(spatial.pad_begin, 0) &&
         all_are(spatial.pad_end, 0);
}

/// A node that add_pointwise computes, with a norm in front.
bool takes_norm(const Lowering& lowering, const Node& node, TensorId source) {
  const auto reader = convolution_reader(lowering, node, source);
  if (!reader || reader->weight[1] != reader->source[1] ||
      !is_pointwise(reader->weight, reader->spatial, reader->groups)) {
    return false;
  }
  const Shape target{reader->source[0], reader->weight[0], reader->source[2], reader->source[3]};
  return suits_norm(lowering, pointwise(target, reader->source[1]));
}

/// Adds the kernel, of which shape and steps are set. `weight` is [columns, inner..].
std::optional<Value> add_product(Lowering& lowering, MatrixProduct kernel, const Value& source,
                                 const Value& weight, const std::optional<Value>& bias,
                                 const Layout& layout, const Lowering::Norm* norm = nullptr) {
  const PostOps post = make_post_ops(lowering, layout, {source});
  const auto epilogue = epilogue_steps(post, layout);
  if (!epilogue || post.reads.size() > kMaximumOperands) return std::nullopt;
  kernel.is_fast = is_fast(kernel);
  kernel.epilogue = *epilogue;
  kernel.has_bias = bias.has_value();
  kernel.has_norm = norm != nullptr;
  kernel.norm_relu = norm != nullptr && norm->relu;
  kernel.threads = lowering.machine().threads;
  const Value ordered = lowering.temporary(
      DType::kFloat32,
      plain_layout({static_cast<std::int64_t>(kernel.weight_floats())}, DType::kFloat32));
  lowering.add_kernel(
      {lowering.plain(weight)}, ordered,
      [kernel](std::span<std::byte* const> operands) {
        kernel.order_weights(floats(operands[0]), floats(operands[1]));
      },
      KernelKind::kReorder);
  std::vector<Value> reads{source, ordered};
  if (norm != nullptr) reads.push_back(norm->vectors);
  if (bias) reads.push_back(lowering.plain(*bias));
  for (const PrimitiveOperand& operand : post.reads) reads.push_back(operand.value);
  const Value target = target_of(lowering, post, DType::kFloat32, layout);
  const std::size_t first_operand = reads.size() - post.reads.size();
  const std::size_t last_operand = reads.size();
  lowering.add_kernel(
      reads, target,
      [kernel, first_operand, last_operand](std::span<std::byte* const> operands) {
        const float* values[kMaximumOperands]{};
        for (std::size_t i = first_operand; i < last_operand; ++i) {
          values[i - first_operand] = floats(operands[i]);
        }
        kernel.run({floats(operands[0]), kernel.has_norm ? floats(operands[2]) : nullptr,
                    floats(operands[1]),
                    kernel.has_bias ? floats(operands[first_operand - 1]) : nullptr, values,
                    floats(operands[last_operand]), floats(operands[last_operand + 1])});
      },
      KernelKind::kCompute, kernel.scratch_bytes());
  return target;
}

}  // namespace

std::optional<Value> add_matrix_product(Lowering& lowering, const Value& a, const Value& weight,
                                        const std::optional<Value>& bias) {
  const Shape shape = dimensions(a.layout);
  const Shape weight_shape = dimensions(weight.layout);
  if (shape.size() != 2 || weight_shape.size() != 2 || strides_of(a.layout)[1] != 1) {
    return std::nullopt;
  }
  MatrixProduct kernel;
  kernel.rows = shape[0];
  kernel.inner = shape[1];
  kernel.columns = weight_shape[0];
  kernel.source.row = strides_of(a.layout)[0];
  kernel.target.row = kernel.columns;
  if (!suits(lowering, kernel)) return std::nullopt;
  return add_product(lowering, kernel, a, weight, bias,
                     plain_layout({kernel.rows, kernel.columns}, DType::kFloat32));
}

std::optional<Value> add_pointwise(Lowering& lowering, const ConvolutionCall& call,
                                   const Lowering::Norm* norm) {
  const Shape weight = dimensions(call.weight.layout);
  if (call.type != DType::kFloat32 || !is_pointwise(weight, call.spatial, call.groups) ||
      !lowering.is_constant(call.weight) || is_pinned(lowering.node())) {
    return std::nullopt;
  }
  const MatrixProduct kernel = pointwise(call.output, weight[1]);
  if (norm == nullptr && !suits(lowering, kernel)) return std::nullopt;
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value& given = norm == nullptr ? call.source : norm->source;
  const Value source =
      lowering.in_layout(given, blocked_layout(dimensions(given.layout), call.type));
  return add_product(lowering, kernel, source, call.weight, call.bias,
                     blocked_layout(call.output, call.type), norm);
}

std::optional<Value> defer_norm(Lowering& lowering, const Lowering::Norm& norm) {
  const NodeId last = lowering.has_epilogue() ? lowering.group()->nodes.back() : NodeId{};
  const TensorId result = lowering.has_epilogue() ? lowering.graph().node(last).outputs.front()
                                                  : lowering.node().outputs.front();
  const NodeId reader = lowering.sole_reader(result);
  if (lowering.machine().prefer_bfloat16 || norm.source.type != DType::kFloat32 ||
      lowering.dtype(result) != DType::kFloat32 || !lowering.is_constant(norm.vectors) ||
      is_pinned(lowering.node()) || !reader.valid() ||
      !takes_norm(lowering, lowering.graph().node(reader), result)) {
    return std::nullopt;
  }
  lowering.defer(result, norm, reader);
  return lowering.temporary(norm.source.type, norm.source.layout);
}

}  // namespace npu::onednn
