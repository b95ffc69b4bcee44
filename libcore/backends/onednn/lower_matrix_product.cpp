// SPDX-License-Identifier: Apache-2.0
// Which linear layers and convolutions of one by one are computed by the products of our own, and
// how. With a few rows, one run over the weights is all there is to it.
//
// One step of Strassen's algorithm takes an eighth of the multiplications away and adds sums of
// parts of both factors and of the result. They take a share of the time that falls with the
// columns, with k and with the rows of a task; the limits are rounded from measurements, and depend
// on the shape alone.
#include <algorithm>

#include "convolution.hpp"
#include "lowering.hpp"
#include "matrix_product.hpp"
#include "vector_product.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::size_t kMaximumOperands = 8;
constexpr std::int64_t kLeastRows = 32;  // fewer are bound by the weights' way from memory
constexpr std::int64_t kLeastFastInner = 512;
constexpr std::int64_t kLeastFastColumns = 256;
constexpr std::int64_t kLeastNormInner = 256;
constexpr std::int64_t kMostNormRows = 1024;

/// Whether the step is worth its sums.
bool is_fast(const MatrixProduct& call) {
  return call.rows >= kLeastRows && call.inner % (2 * kLanes) == 0 &&
         call.columns % (4 * kLanes) == 0 && call.inner >= kLeastFastInner &&
         call.columns >= kLeastFastColumns;
}

/// The kernel can compute it.
bool supports(const Lowering& lowering, const MatrixProduct& call) {
  return lowering.machine().wide_vectors && MatrixProduct::is_available() &&
         call.inner % kLanes == 0 && call.columns % kLanes == 0;
}

/// And takes less time than oneDNN.
bool suits(const Lowering& lowering, const MatrixProduct& call) {
  return supports(lowering, call) && is_fast(call);
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

/// What a product reads beside its source.
struct Factors {
  Value weight;  ///< as the kernel reads it
  std::optional<Value> bias;
  const Lowering::Norm* norm = nullptr;
};

/// The current group's epilogue, if a kernel of our own can do it.
struct Epilogue {
  PostOps post;
  std::vector<EpilogueStep> steps;
};
std::optional<Epilogue> epilogue_of(Lowering& lowering, const Value& source, const Layout& layout) {
  Epilogue result{make_post_ops(lowering, layout, {source}), {}};
  const auto steps = epilogue_steps(result.post, layout);
  if (!steps || result.post.reads.size() > kMaximumOperands) return std::nullopt;
  result.steps = *steps;
  return result;
}

/// Adds the kernel `run`, which gets its operands by name.
template <typename Run>
Value add_step(Lowering& lowering, const Value& source, const Factors& factors, const PostOps& post,
               const Layout& layout, std::size_t scratch_bytes, Run run) {
  std::vector<Value> reads{source, factors.weight};
  if (factors.norm != nullptr) reads.push_back(factors.norm->vectors);
  if (factors.bias) reads.push_back(lowering.plain(*factors.bias));
  for (const PrimitiveOperand& operand : post.reads) reads.push_back(operand.value);
  const Value target = target_of(lowering, post, DType::kFloat32, layout);
  const std::size_t last = reads.size();
  const std::size_t first = last - post.reads.size();
  const bool has_norm = factors.norm != nullptr;
  const bool has_bias = factors.bias.has_value();
  const bool has_scratch = scratch_bytes != 0;
  lowering.add_kernel(
      reads, target,
      [=](std::span<std::byte* const> operands) {
        const float* values[kMaximumOperands]{};
        for (std::size_t i = first; i < last; ++i) values[i - first] = floats(operands[i]);
        run({floats(operands[0]), has_norm ? floats(operands[2]) : nullptr, floats(operands[1]),
             has_bias ? floats(operands[first - 1]) : nullptr, values, floats(operands[last]),
             has_scratch ? floats(operands[last + 1]) : nullptr});
      },
      KernelKind::kCompute, scratch_bytes);
  return target;
}

/// Adds the kernel, of which shape and steps are set. `weight` is [columns, inner..].
std::optional<Value> add_product(Lowering& lowering, MatrixProduct kernel, const Value& source,
                                 Factors factors, const Layout& layout) {
  const auto epilogue = epilogue_of(lowering, source, layout);
  if (!epilogue) return std::nullopt;
  kernel.is_fast = is_fast(kernel);
  kernel.epilogue = epilogue->steps;
  kernel.has_bias = factors.bias.has_value();
  kernel.has_norm = factors.norm != nullptr;
  kernel.norm_relu = factors.norm != nullptr && factors.norm->relu;
  kernel.threads = lowering.machine().threads;
  factors.weight =
      ordered_weights(lowering, factors.weight, kernel.weight_floats(),
                      [kernel](const float* from, float* to) { kernel.order_weights(from, to); });
  return add_step(lowering, source, factors, epilogue->post, layout, kernel.scratch_bytes(),
                  [kernel](const MatrixProduct::Operands& operands) { kernel.run(operands); });
}

/// The same for a few rows.
std::optional<Value> add_vector_product(Lowering& lowering, VectorProduct kernel,
                                        const Value& source, Factors factors,
                                        const Layout& layout) {
  const auto epilogue = epilogue_of(lowering, source, layout);
  if (!epilogue) return std::nullopt;
  kernel.epilogue = epilogue->steps;
  kernel.has_bias = factors.bias.has_value();
  kernel.threads = lowering.machine().threads;
  factors.weight = lowering.plain(factors.weight);
  return add_step(lowering, source, factors, epilogue->post, layout, 0,
                  [kernel](const MatrixProduct::Operands& operands) {
                    kernel.run(operands.source, operands.weight, operands.bias, operands.epilogue,
                               operands.target);
                  });
}

}  // namespace

std::optional<Value> add_matrix_product(Lowering& lowering, const Value& a, const Value& weight,
                                        const std::optional<Value>& bias) {
  const Shape shape = dimensions(a.layout);
  const Shape weight_shape = dimensions(weight.layout);
  if (shape.size() != 2 || weight_shape.size() != 2 || strides_of(a.layout)[1] != 1) {
    return std::nullopt;
  }
  const Layout layout = plain_layout({shape[0], weight_shape[0]}, DType::kFloat32);
  if (shape[0] <= VectorProduct::kMostRows) {
    return add_vector_product(lowering,
                              {.rows = shape[0],
                               .inner = shape[1],
                               .columns = weight_shape[0],
                               .source_row = strides_of(a.layout)[0]},
                              a, {weight, bias}, layout);
  }
  MatrixProduct kernel;
  kernel.rows = shape[0];
  kernel.inner = shape[1];
  kernel.columns = weight_shape[0];
  kernel.source.row = strides_of(a.layout)[0];
  kernel.target.row = kernel.columns;
  if (!suits(lowering, kernel)) return std::nullopt;
  return add_product(lowering, kernel, a, {weight, bias}, layout);
}

std::optional<Value> add_pointwise(Lowering& lowering, const ConvolutionCall& call,
                                   const Lowering::Norm* norm) {
  const Shape weight = dimensions(call.weight.layout);
  if (call.type != DType::kFloat32 || !is_pointwise(weight, call.spatial, call.groups) ||
      !lowering.is_constant(call.weight) || is_pinned(lowering.node())) {
    return std::nullopt;
  }
  const MatrixProduct kernel = pointwise(call.output, weight[1]);
  const bool has_few_rows = norm == nullptr && supports(lowering, kernel) && kernel.rows == 1 &&
                            kernel.images <= VectorProduct::kMostRows;
  if (norm == nullptr && !has_few_rows && !suits(lowering, kernel)) return std::nullopt;
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value& given = norm == nullptr ? call.source : norm->source;
  const Value source =
      lowering.in_layout(given, blocked_layout(dimensions(given.layout), call.type));
  const Layout layout = blocked_layout(call.output, call.type);
  if (has_few_rows) {  // one pixel of each image: blocks of channels lie side by side
    return add_vector_product(lowering,
                              {.rows = kernel.images,
                               .inner = kernel.inner,
                               .columns = kernel.columns,
                               .source_row = kernel.inner},
                              source, {call.weight, call.bias}, layout);
  }
  return add_product(lowering, kernel, source, {call.weight, call.bias, norm}, layout);
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
