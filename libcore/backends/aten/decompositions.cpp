// SPDX-License-Identifier: Apache-2.0
// Ops that torch 2 exports, written with the ops of libtorch 1.13.
//
// Each is a plain function and one row of kDecompositions: op type, torch 2's schema, when it is
// used, function. libtorch's template boxes the function, so its parameter types must be those that
// a kernel of that schema has. Where PyTorch's result depends on the order of operations, this
// follows the order of its reference path (named at the function). Training-only behaviour (dropout
// masks, gradients) is left out and refused.
#include "decompositions.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "boxed.hpp"
#include "grouped_product.hpp"
#include "quantized.hpp"
#include "row_ops.hpp"
#include "segments.hpp"

namespace npu::aten {
namespace {

using at::Scalar;
using at::Tensor;
using c10::optional;
using IntList = at::IntArrayRef;
using IndexList = c10::List<optional<Tensor>>;

bool is_reduced(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

// ---- attention

// A mask that is added to the scores: bool true keeps a score, false makes it -inf.
Tensor additive_mask(const Tensor& mask, at::ScalarType compute_type) {
  if (mask.scalar_type() != at::kBool) return mask.to(compute_type);
  return at::zeros(mask.sizes(), mask.options().dtype(compute_type))
      .masked_fill_(mask.logical_not(), -std::numeric_limits<double>::infinity());
}

// Rows that the mask blocks completely; undefined if there is none. Softmax gives NaN there, and
// PyTorch (since 2.5) zero.
Tensor blocked_rows(const Tensor& mask) {
  const Tensor rows = mask.eq(-std::numeric_limits<double>::infinity()).all(-1, true);
  return rows.any().item<bool>() ? rows : Tensor();
}

struct Attention {
  Tensor output;
  Tensor weights;
  Tensor scores;  // before softmax
};

// aten::_scaled_dot_product_attention_math of torch 2: both sides are scaled by sqrt(scale), so
// that no product overflows early; 16-bit operands are computed in float32.
Attention attend(const Tensor& query, const Tensor& key, const Tensor& value,
                 const optional<Tensor>& attn_mask, double dropout_p, bool is_causal,
                 optional<double> scale, bool enable_gqa) {
  TORCH_CHECK(dropout_p == 0.0, "dropout_p is ", dropout_p, ", but only 0 runs here");
  TORCH_CHECK(!is_causal || !attn_mask || !attn_mask->defined(),
              "is_causal and attn_mask exclude each other");
  TORCH_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2,
              "query, key and value need at least two dimensions");
  const at::ScalarType type = query.scalar_type();
  TORCH_CHECK(key.scalar_type() == type && value.scalar_type() == type,
              "query, key and value have different dtypes");
  const at::ScalarType compute_type = is_reduced(type) ? at::kFloat : type;
  Tensor q = query.to(compute_type);
  Tensor k = key.to(compute_type);
  Tensor v = value.to(compute_type);
  if (enable_gqa) {
    TORCH_CHECK(q.dim() >= 3 && k.dim() >= 3 && v.dim() >= 3 && k.size(-3) != 0 &&
                    v.size(-3) != 0 && q.size(-3) % k.size(-3) == 0 && q.size(-3) % v.size(-3) == 0,
                "the heads of query are no multiple of those of key and value");
    k = k.repeat_interleave(q.size(-3) / k.size(-3), -3);
    v = v.repeat_interleave(q.size(-3) / v.size(-3), -3);
  }
  const double factor = scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(-1))));
  const double root = std::sqrt(std::abs(factor));
  q = q.mul(factor < 0 ? -root : root);
  Attention result;
  result.scores = at::matmul(q, k.transpose(-2, -1).mul(root));
  Tensor mask;
  if (is_causal) {
    const std::vector<std::int64_t> square = {q.size(-2), k.size(-2)};
    mask = additive_mask(at::ones(square, q.options().dtype(at::kBool)).tril(), compute_type);
  } else if (attn_mask && attn_mask->defined()) {
    mask = additive_mask(*attn_mask, compute_type);
  }
  if (mask.defined()) result.scores = result.scores.add_(mask);
  result.weights = at::softmax(result.scores, -1);
  if (mask.defined() && !is_causal && mask.numel() != 0) {
    const Tensor rows = blocked_rows(mask);
    if (rows.defined()) result.weights = result.weights.masked_fill(rows, 0.0);
  }
  result.output = at::matmul(result.weights, v).to(type);
  return result;
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const optional<Tensor>& attn_mask, double dropout_p,
                                    bool is_causal, optional<double> scale, bool enable_gqa) {
  return attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa).output;
}

std::tuple<Tensor, Tensor> scaled_dot_product_attention_math(
    const Tensor& query, const Tensor& key, const Tensor& value, const optional<Tensor>& attn_mask,
    double dropout_p, bool is_causal, const optional<Tensor>& dropout_mask, optional<double> scale,
    bool enable_gqa) {
  TORCH_CHECK(!dropout_mask || !dropout_mask->defined(), "dropout_mask does not run here");
  Attention result = attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa);
  return {result.output, result.weights.to(query.scalar_type())};
}

std::tuple<Tensor, Tensor> scaled_dot_product_flash_attention_for_cpu(
    const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p, bool is_causal,
    const optional<Tensor>& attn_mask, optional<double> scale) {
  Attention result = attend(query, key, value, attn_mask, dropout_p, is_causal, scale, false);
  return {result.output, at::logsumexp(result.scores, {-1})};
}

Tensor safe_softmax(const Tensor& self, std::int64_t dim, optional<at::ScalarType> dtype) {
  const Tensor weights = at::softmax(self, dim, dtype);
  const Tensor rows = self.eq(-std::numeric_limits<double>::infinity()).all(dim, true);
  return weights.masked_fill(rows, 0.0);
}

// ---- normalisation

// Statistics over the last `count` dimensions, in float32 for 16-bit tensors; the weight is applied
// before the result is rounded back, as torch 2's rms_norm_composite does.
std::tuple<Tensor, Tensor> rms_norm_with_stats(const Tensor& input, IntList normalized_shape,
                                               const optional<Tensor>& weight,
                                               optional<double> eps) {
  const auto count = static_cast<std::int64_t>(normalized_shape.size());
  TORCH_CHECK(
      count >= 1 && input.dim() >= count &&
          input.sizes().slice(static_cast<std::size_t>(input.dim() - count)) == normalized_shape,
      "normalized_shape ", normalized_shape, " does not end the shape ", input.sizes());
  TORCH_CHECK(!weight || !weight->defined() || weight->sizes() == normalized_shape,
              "the shape of weight is not normalized_shape ", normalized_shape);
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 1; i <= count; ++i) dims.push_back(-i);
  const at::ScalarType type = input.scalar_type();
  const Tensor x = is_reduced(type) ? input.to(at::kFloat) : input;
  const double epsilon =
      eps.value_or(type == at::kDouble ? std::numeric_limits<double>::epsilon()
                                       : double{std::numeric_limits<float>::epsilon()});
  const Tensor rstd = x.pow(2).mean(dims, true).add(epsilon).rsqrt();
  Tensor result = x.mul(rstd);
  if (weight && weight->defined()) result = result.mul(*weight);
  return {result.to(type), rstd};
}

Tensor rms_norm(const Tensor& input, IntList normalized_shape, const optional<Tensor>& weight,
                optional<double> eps) {
  return std::get<0>(rms_norm_with_stats(input, normalized_shape, weight, eps));
}

using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

ThreeTensors native_batch_norm_no_training(const Tensor& input, const optional<Tensor>& weight,
                                           const optional<Tensor>& bias, const Tensor& running_mean,
                                           const Tensor& running_var, double momentum, double eps) {
  return at::native_batch_norm(input, weight, bias, running_mean, running_var, false, momentum,
                               eps);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_no_update(
    const Tensor& input, const optional<Tensor>& weight, const optional<Tensor>& bias,
    const optional<Tensor>& running_mean, const optional<Tensor>& running_var, double momentum,
    double eps) {
  auto [output, mean, invstd] =
      at::native_batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps);
  return {output, mean, invstd, at::empty({0}, input.options().dtype(at::kByte))};
}

// The running statistics are updated in copies: the values of the document are immutable.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> native_batch_norm_functional(
    const Tensor& input, const optional<Tensor>& weight, const optional<Tensor>& bias,
    const Tensor& running_mean, const Tensor& running_var, bool training, double momentum,
    double eps) {
  const Tensor mean = running_mean.clone();
  const Tensor var = running_var.clone();
  auto [output, save_mean, save_invstd] =
      at::native_batch_norm(input, weight, bias, mean, var, training, momentum, eps);
  return {output, save_mean, save_invstd, mean, var};
}

ThreeTensors native_batch_norm_legit(const Tensor& input, const optional<Tensor>& weight,
                                     const optional<Tensor>& bias, const Tensor& running_mean,
                                     const Tensor& running_var, bool training, double momentum,
                                     double eps) {
  auto results = native_batch_norm_functional(input, weight, bias, running_mean, running_var,
                                              training, momentum, eps);
  return {std::get<0>(results), std::get<1>(results), std::get<2>(results)};
}

ThreeTensors native_batch_norm_no_stats(const Tensor& input, const optional<Tensor>& weight,
                                        const optional<Tensor>& bias, bool training,
                                        double momentum, double eps) {
  return at::native_batch_norm(input, weight, bias, {}, {}, training, momentum, eps);
}

Tensor prelu_kernel(const Tensor& self, const Tensor& weight) {
  return at::where(self.gt(0), self, self.mul(weight));
}

// ---- statistics: torch 2's correction is a Scalar, 1.13's an int

optional<std::int64_t> correction_of(const optional<Scalar>& correction) {
  if (!correction) return c10::nullopt;
  const double value = correction->toDouble();
  TORCH_CHECK(value == std::floor(value), "correction is ", value, ", but libtorch ",
              NPU_TORCH_VERSION, " takes integers only");
  return static_cast<std::int64_t>(value);
}

Tensor var_correction(const Tensor& self, at::OptionalIntArrayRef dim,
                      const optional<Scalar>& correction, bool keepdim) {
  return at::var(self, dim, correction_of(correction), keepdim);
}
Tensor std_correction(const Tensor& self, at::OptionalIntArrayRef dim,
                      const optional<Scalar>& correction, bool keepdim) {
  return at::std(self, dim, correction_of(correction), keepdim);
}
std::tuple<Tensor, Tensor> var_mean_correction(const Tensor& self, at::OptionalIntArrayRef dim,
                                               const optional<Scalar>& correction, bool keepdim) {
  return at::var_mean(self, dim, correction_of(correction), keepdim);
}
std::tuple<Tensor, Tensor> std_mean_correction(const Tensor& self, at::OptionalIntArrayRef dim,
                                               const optional<Scalar>& correction, bool keepdim) {
  return at::std_mean(self, dim, correction_of(correction), keepdim);
}

// ---- reductions over several dimensions

std::vector<std::int64_t> sorted_dims(const Tensor& self, IntList dims) {
  const std::int64_t rank = self.dim();
  std::vector<std::int64_t> sorted;
  for (const std::int64_t dim : dims) sorted.push_back(c10::maybe_wrap_dim(dim, rank));
  std::sort(sorted.begin(), sorted.end());
  TORCH_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "dimension ",
              "appears twice in ", dims);
  return sorted;
}

template <bool kAll>
Tensor reduce_bool(const Tensor& self, at::OptionalIntArrayRef dim, bool keepdim) {
  std::vector<std::int64_t> dims;
  if (dim) {
    dims = sorted_dims(self, *dim);
  } else {
    for (std::int64_t i = 0; i < self.dim(); ++i) dims.push_back(i);
  }
  Tensor result = self;
  if (dims.empty()) return kAll ? at::all(self.unsqueeze(0), 0) : at::any(self.unsqueeze(0), 0);
  for (auto dimension = dims.rbegin(); dimension != dims.rend(); ++dimension) {
    result = kAll ? at::all(result, *dimension, keepdim) : at::any(result, *dimension, keepdim);
  }
  return result;
}

// ---- shapes and views

// Values are immutable here, so a view may be a copy if the strides do not allow a view. The
// strides of a value can differ from those in the exported program: inputs of a partition are
// contiguous, and torch 2's kernels lay some results out differently.
Tensor view(const Tensor& self, IntList size) { return at::reshape(self, size); }
Tensor view_as(const Tensor& self, const Tensor& other) { return at::reshape(self, other.sizes()); }

Tensor squeeze_dims(const Tensor& self, IntList dims) {
  const auto sorted = sorted_dims(self, dims);
  Tensor result = self;
  for (auto dim = sorted.rbegin(); dim != sorted.rend(); ++dim) result = result.squeeze(*dim);
  return result;
}

Tensor copy_of(const Tensor& self) { return self.clone(); }

// Converts between two layouts of an accelerator; neither values nor, here, memory change.
Tensor channel_norm(const Tensor& self, bool /*direction*/, c10::string_view /*layout*/) {
  return self.alias();
}

Tensor reshape_copy(const Tensor& self, IntList size) { return at::reshape(self, size).clone(); }
Tensor squeeze_dims_copy(const Tensor& self, IntList dims) {
  return squeeze_dims(self, dims).clone();
}

// libtorch 1.13 divides by zero where the groups are more than the channels, and of no elements.
Tensor channel_shuffle(const Tensor& self, std::int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "its operand has ", self.dim(), " dimensions, expected at least 3");
  TORCH_CHECK(groups > 0 && self.size(1) % groups == 0, groups, " groups do not divide ",
              self.size(1), " channels");
  std::vector<std::int64_t> parts = self.sizes().vec();
  parts[1] /= groups;
  parts.insert(parts.begin() + 1, groups);
  return self.reshape(parts).transpose(1, 2).reshape(self.sizes());
}

Tensor empty_permuted(IntList size, IntList physical_layout, optional<at::ScalarType> dtype,
                      optional<at::Layout> layout, optional<at::Device> device,
                      optional<bool> pin_memory) {
  (void)physical_layout;  // strides are not part of a value
  return at::empty(size, dtype, layout, device, pin_memory, c10::nullopt);
}

std::int64_t sym_size(const Tensor& self, std::int64_t dim) { return self.size(dim); }
std::int64_t sym_numel(const Tensor& self) { return self.numel(); }
std::int64_t sym_stride(const Tensor& self, std::int64_t dim) {
  return self.contiguous().stride(dim);
}

// ---- indexing

Tensor unsafe_index(const Tensor& self, const IndexList& indices) {
  return at::index(self, indices);
}

Tensor unsafe_index_put(const Tensor& self, const IndexList& indices, const Tensor& values,
                        bool accumulate) {
  return at::index_put(self, indices, values, accumulate);
}

// Elements where `mask` is false may have indices out of range; they read element 0 and are
// replaced.
Tensor unsafe_masked_index(const Tensor& self, const Tensor& mask, const IndexList& indices,
                           const Scalar& fill) {
  TORCH_CHECK(self.numel() != 0, "self has no elements");
  IndexList clamped;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const optional<Tensor> index = indices.get(i);
    if (index && index->defined()) {
      clamped.push_back(index->clamp(-self.size(static_cast<std::int64_t>(i)),
                                     self.size(static_cast<std::int64_t>(i)) - 1));
    } else {
      clamped.push_back(c10::nullopt);
    }
  }
  return at::index(self, clamped).masked_fill(mask.logical_not(), fill);
}

Tensor nonzero_static(const Tensor& self, std::int64_t size, std::int64_t fill_value) {
  TORCH_CHECK(size >= 0, "size is ", size, ", expected at least 0");
  const Tensor found = at::nonzero(self);
  const std::int64_t kept = std::min(size, found.size(0));
  Tensor result = at::full({size, self.dim()}, fill_value, found.options());
  result.narrow(0, 0, kept).copy_(found.narrow(0, 0, kept));
  return result;
}

// ---- assertions: they hold or the run fails

void assert_async(const Tensor& self, c10::string_view message) {
  TORCH_CHECK(self.item().toBool(), message);
}
Tensor functional_assert_async(const Tensor& self, c10::string_view message, const Tensor& token) {
  assert_async(self, message);
  return token;
}
void assert_scalar(const Scalar& self, c10::string_view message) {
  TORCH_CHECK(self.toBool(), message);
}
Tensor functional_assert_scalar(const Scalar& self, c10::string_view message, const Tensor& token) {
  assert_scalar(self, message);
  return token;
}

// Strides, device and layout are those of the exporting machine and not part of a value.
void assert_tensor_metadata(const Tensor& a, at::OptionalIntArrayRef size,
                            at::OptionalIntArrayRef stride, optional<at::ScalarType> dtype,
                            optional<at::Device> device, optional<at::Layout> layout) {
  (void)stride;
  (void)device;
  (void)layout;
  TORCH_CHECK(!size || a.sizes() == *size, "the tensor has shape ", a.sizes(), ", expected ",
              *size);
  TORCH_CHECK(!dtype || a.scalar_type() == *dtype, "the tensor has dtype ", a.scalar_type(),
              ", expected ", *dtype);
}

void constrain_range(const Scalar& size, optional<std::int64_t> min, optional<std::int64_t> max) {
  const std::int64_t value = size.toLong();
  TORCH_CHECK(!min || value >= *min, "value ", value, " is less than ", *min);
  TORCH_CHECK(!max || value <= *max, "value ", value, " is greater than ", *max);
}

// ---- the table

using When = Decomposition::When;

constexpr Decomposition kDecompositions[] = {
    {"aten.scaled_dot_product_attention.default",
     "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
     "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> "
     "Tensor",
     When::kMissing, &boxed<&scaled_dot_product_attention>},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default",
     "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
     "dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> "
     "(Tensor output, Tensor logsumexp)",
     When::kMissing, &boxed<&scaled_dot_product_flash_attention_for_cpu>},
    {"aten._scaled_dot_product_attention_math.default",
     "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? "
     "attn_mask=None, float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, "
     "float? "
     "scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
     When::kAlways, &boxed<&scaled_dot_product_attention_math>},
    {"aten._safe_softmax.default",
     "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", When::kMissing,
     &boxed<&safe_softmax>},

    {"aten.rms_norm.default",
     "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
     "Tensor",
     When::kMissing, &boxed<&rms_norm>},
    {"aten._fused_rms_norm.default",
     "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> "
     "(Tensor, "
     "Tensor)",
     When::kMissing, &boxed<&rms_norm_with_stats>},
    {"aten._native_batch_norm_legit_no_training.default",
     "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
     "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     When::kMissing, &boxed<&native_batch_norm_no_training>},
    {"aten._native_batch_norm_legit.default",
     "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
     "running_mean, "
     "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, "
     "Tensor)",
     When::kMissing, &boxed<&native_batch_norm_legit>},
    {"aten._native_batch_norm_legit.no_stats",
     "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, "
     "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     When::kMissing, &boxed<&native_batch_norm_no_stats>},
    {"aten._native_batch_norm_legit_functional.default",
     "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
     "running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, "
     "Tensor, "
     "Tensor, Tensor, Tensor)",
     When::kMissing, &boxed<&native_batch_norm_functional>},
    {"aten._batch_norm_no_update.default",
     "_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? "
     "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
     When::kMissing, &boxed<&batch_norm_no_update>},
    {"aten._prelu_kernel.default", "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
     When::kMissing, &boxed<&prelu_kernel>},

    {"aten.var.correction",
     "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
     "keepdim=False) -> "
     "Tensor",
     When::kAlways, &boxed<&var_correction>},
    {"aten.std.correction",
     "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
     "keepdim=False) -> "
     "Tensor",
     When::kAlways, &boxed<&std_correction>},
    {"aten.var_mean.correction",
     "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
     "keepdim=False) -> (Tensor, Tensor)",
     When::kAlways, &boxed<&var_mean_correction>},
    {"aten.std_mean.correction",
     "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
     "keepdim=False) -> (Tensor, Tensor)",
     When::kAlways, &boxed<&std_mean_correction>},
    {"aten.all.dims", "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     When::kMissing, &boxed<&reduce_bool<true>>},
    {"aten.any.dims", "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     When::kMissing, &boxed<&reduce_bool<false>>},

    {"aten.view.default", "view(Tensor(a) self, SymInt[] size) -> Tensor(a)", When::kAlways,
     &boxed<&view>},
    {"aten.view_as.default", "view_as(Tensor(a) self, Tensor other) -> Tensor(a)", When::kAlways,
     &boxed<&view_as>},
    {"aten._unsafe_view.default", "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
     When::kAlways, &boxed<&view>},
    {"aten.view_copy.default", "view_copy(Tensor self, SymInt[] size) -> Tensor", When::kAlways,
     &boxed<&reshape_copy>},
    {"aten._reshape_copy.default", "_reshape_copy(Tensor self, SymInt[] size) -> Tensor",
     When::kMissing, &boxed<&reshape_copy>},
    {"aten._lazy_clone.default", "_lazy_clone(Tensor self) -> Tensor", When::kMissing,
     &boxed<&copy_of>},
    {"aten.squeeze.dims", "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", When::kMissing,
     &boxed<&squeeze_dims>},
    {"aten.squeeze_copy.dims", "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
     When::kMissing, &boxed<&squeeze_dims_copy>},
    {"aten.channel_shuffle.default", "channel_shuffle(Tensor self, int groups) -> Tensor",
     When::kAlways, &boxed<&channel_shuffle>},
    {"aten.native_channel_shuffle.default",
     "native_channel_shuffle(Tensor self, int groups) -> Tensor", When::kAlways,
     &boxed<&channel_shuffle>},
    {"npu.channel_norm",
     "channel_norm(Tensor(a) self, *, bool direction, str layout='') -> Tensor(a)", When::kAlways,
     &boxed<&channel_norm>},
    {"npu.length_mask",
     "length_mask(Tensor? positions=None, Tensor? valid=None, *, str operands, int keys, bool "
     "causal=False, int window=-1) -> Tensor",
     When::kAlways, &boxed<&length_mask>},
    {"npu.segment_reduce",
     "segment_reduce(Tensor self, Tensor offsets, Tensor? indices=None, Tensor? weights=None, *, "
     "str reduce='sum') -> Tensor",
     When::kAlways, &boxed<&segment_reduce>},
    {"aten.empty_permuted.default",
     "empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     When::kMissing, &boxed<&empty_permuted>},
    {"aten.sym_size.int", "sym_size.int(Tensor self, int dim) -> SymInt", When::kAlways,
     &boxed<&sym_size>},
    {"aten.sym_numel.default", "sym_numel(Tensor self) -> SymInt", When::kAlways,
     &boxed<&sym_numel>},
    {"aten.sym_stride.int", "sym_stride.int(Tensor self, int dim) -> SymInt", When::kAlways,
     &boxed<&sym_stride>},

    {"aten._unsafe_index.Tensor", "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
     When::kMissing, &boxed<&unsafe_index>},
    {"aten._unsafe_index_put.default",
     "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
     "Tensor",
     When::kMissing, &boxed<&unsafe_index_put>},
    {"aten._unsafe_masked_index.default",
     "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
     When::kMissing, &boxed<&unsafe_masked_index>},
    {"aten.nonzero_static.default",
     "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", When::kMissing,
     &boxed<&nonzero_static>},

    {"aten._grouped_mm.default",
     "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
     "out_dtype=None) -> Tensor",
     When::kMissing, &boxed<&grouped_mm>},
    {"transformers.grouped_mm_fallback.default",
     "grouped_mm_fallback(Tensor self, Tensor mat2, Tensor offs) -> Tensor", When::kAlways,
     &boxed<&grouped_mm_fallback>},

    {"aten._assert_async.msg", "_assert_async.msg(Tensor self, str assert_msg) -> ()",
     When::kMissing, &boxed<&assert_async>},
    {"aten._functional_assert_async.msg",
     "_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor",
     When::kMissing, &boxed<&functional_assert_async>},
    {"aten._assert_scalar.default", "_assert_scalar(Scalar self, str assert_msg) -> ()",
     When::kMissing, &boxed<&assert_scalar>},
    {"aten._functional_assert_scalar.default",
     "_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor",
     When::kMissing, &boxed<&functional_assert_scalar>},
    {"aten._assert_tensor_metadata.default",
     "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? "
     "dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
     When::kAlways, &boxed<&assert_tensor_metadata>},
    {"aten.sym_constrain_range.default",
     "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", When::kMissing,
     &boxed<&constrain_range>},
    {"aten.sym_constrain_range_for_size.default",
     "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
     When::kMissing, &boxed<&constrain_range>},
};

}  // namespace

std::span<const Decomposition> decompositions() {
  static const std::vector<Decomposition> all = [] {
    std::vector<Decomposition> rows(std::begin(kDecompositions), std::end(kDecompositions));
    const auto quantized = quantized_decompositions();
    rows.insert(rows.end(), quantized.begin(), quantized.end());
    return rows;
  }();
  return all;
}

}  // namespace npu::aten
