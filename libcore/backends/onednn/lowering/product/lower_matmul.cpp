// SPDX-License-Identifier: Apache-2.0
// Matrix products: linear, addmm, mm, bmm and matmul of any rank, all through one oneDNN matmul.
//
// Transposed operands stay views: a matrix with unit stride in either of its two dimensions is read
// in place. A constant right operand is laid out as the primitive likes it, once at load. Equal
// batch dimensions are kept, a right matrix that all batches share is multiplied once with the left
// ones stacked, and other broadcasts are written out.
#include <algorithm>
#include <cmath>

#include "lowering/elementwise/elementwise.hpp"
#include "lowering/engine/promotion.hpp"
#include "lowering/norm/norm.hpp"
#include "lowering/product/integer_product.hpp"
#include "lowering/product/product.hpp"
#include "ops/op_catalogue.hpp"
#include "program/implementations.hpp"

namespace npu::onednn {

namespace {

/// True if the last two dimensions are a matrix that a matrix product reads without a copy.
bool is_matrix_view(const Layout& layout) {
  if (!is_strided(layout)) return false;
  const Shape shape = dimensions(layout);
  const auto strides = strides_of(layout);
  const std::size_t rank = shape.size();
  const std::int64_t rows = strides[rank - 2];
  const std::int64_t columns = strides[rank - 1];
  return (columns == 1 && rows >= shape[rank - 1]) || (rows == 1 && columns >= shape[rank - 2]);
}

Shape batch_of(const Value& value) {
  Shape shape = dimensions(value.layout);
  shape.resize(shape.size() - 2);
  return shape;
}

bool all_ones(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent == 1; });
}

/// The value repeated over broadcast batch dimensions, row-major.
Value with_batch(Lowering& lowering, const Value& value, const Shape& batch) {
  Shape shape = dimensions(value.layout);
  Shape full = batch;
  full.insert(full.end(), shape.end() - 2, shape.end());
  shape.insert(shape.begin(), full.size() - shape.size(), 1);
  if (shape == full) return lowering.reshaped(value, shape);
  const Value source = lowering.reshaped(value, shape);
  const Value target = lowering.temporary(value.type, plain_layout(full, value.type));
  const Iteration space = iterate(target.layout);
  StridedCopy copy{dtype_size(value.type), space.extents, strides_in(space, source.layout),
                   space.strides};
  copy.simplify();
  lowering.add_kernel({source}, target, std::move(copy), KernelKind::kReorder);
  return target;
}

dnnl::matmul::primitive_desc describe(Lowering& lowering, const MatmulCall& call, const Layout& a,
                                      const Layout& b, const Layout& target,
                                      const dnnl::post_ops& post = {}) {
  dnnl::primitive_attr attributes = Lowering::attributes();
  if (post.len() != 0) attributes.set_post_ops(post);
  if (call.scale != 1.0F) attributes.set_output_scales(0, {call.scale});
  if (call.bias) {
    Shape bias(static_cast<std::size_t>(target.data.ndims), 1);
    bias.back() = target.data.dims[target.data.ndims - 1];
    return first_right(dnnl::matmul::primitive_desc(
        {a, b, plain_layout(bias, DType::kFloat32), target}, attributes, lowering.engine()));
  }
  return first_right(dnnl::matmul::primitive_desc({a, b, target}, attributes, lowering.engine()));
}

}  // namespace

void share_batches(Lowering& lowering, Value& a, Value& b, const Shape& batch) {
  if (!all_ones(batch_of(b))) {
    a = with_batch(lowering, a, batch);
    b = with_batch(lowering, b, batch);
    return;
  }
  const Shape a_shape = dimensions(a.layout);
  const Shape b_shape = dimensions(b.layout);
  const std::int64_t inner = a_shape.back();
  if (a_shape.size() > 2) {
    std::int64_t stacked = a_shape[a_shape.size() - 2];
    for (const std::int64_t extent : batch_of(a)) stacked *= extent;
    a = lowering.reshaped(a, {stacked, inner});
  }
  if (b_shape.size() > 2) {
    // Dropping dimensions of 1 keeps the strides of the last two.
    const auto strides = strides_of(b.layout);
    b.layout = strided_layout({inner, b_shape.back()},
                              {strides[strides.size() - 2], strides.back()}, b.type);
  }
}

namespace {

/// Memory for the result that already holds what is added to the product.
Value filled_target(Lowering& lowering, const MatmulCall& call, const Layout& layout) {
  const std::size_t rank = dimensions(layout).size();
  Shape shape = dimensions(call.addend->layout);
  if (shape.size() < rank) shape.insert(shape.begin(), rank - shape.size(), 1);
  shape.erase(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(rank));  // ones
  const Value source = lowering.reshaped(*call.addend, shape);
  const Value target = lowering.temporary(call.type, layout);
  const Iteration space = iterate(layout);
  StridedCopy copy{dtype_size(call.type), space.extents, strides_in(space, source.layout),
                   space.strides};
  copy.simplify();
  lowering.add_kernel({source}, target, std::move(copy), KernelKind::kReorder);
  return target;
}

/// Why none of our kernels was asked.
KernelChoice no_own_product(bool is_constant, bool is_float32) {
  const char* reason = !is_constant  ? "the right factor is not constant"
                       : !is_float32 ? "it computes in float32 only"
                                     : "the product has a factor";
  return {{},
          {{std::string(Gemv::kName), reason}, {std::string(PackedGemm::kStrassenName), reason}}};
}

/// What is done to a product before it is stored, and where it is stored.
struct ProductTarget {
  dnnl::matmul::primitive_desc primitive;
  std::vector<PrimitiveOperand> reads;
  std::optional<Value> accumulated;
};

/// The bare primitive with the call's addend or the group's epilogue. `describe_with` gives
/// the primitive with post-ops.
template <typename Describe>
Lowered<ProductTarget> finish_product(Lowering& lowering, const GroupContext& context,
                                      const MatmulCall& call,
                                      const dnnl::matmul::primitive_desc& bare,
                                      std::initializer_list<Value> factors, const Layout& layout,
                                      const Describe& describe_with) {
  if (call.addend) {
    const PostOpRecord sum{.kind = PostOpRecord::Kind::kSum, .alpha = call.addend_scale};
    return ProductTarget{
        describe_with(make_post_ops({&sum, 1}, {})), {}, filled_target(lowering, call, layout)};
  }
  if (!context.has_epilogue()) return ProductTarget{bare, {}, std::nullopt};
  if (call.type != context.compute_type) {
    return NotFused{"the product is computed in float32 and rounded before what stands behind it"};
  }
  const auto epilogue = bind_epilogue(lowering, context, layout, factors);
  if (!epilogue) return epilogue.refusal();
  const auto post = post_ops_of(lowering, *epilogue);
  if (!post) return post.refusal();
  if (post->operations.len() == 0) return ProductTarget{bare, {}, std::nullopt};
  auto fused = describe_with(post->operations);
  if (is_reference(fused) && !is_reference(bare)) {
    return NotFused{"with what stands behind it the product would be a slower one"};
  }
  return ProductTarget{std::move(fused), post->reads, epilogue->accumulated};
}

}  // namespace

Value swapped(const Value& value) {
  Value result = value;
  const int rank = value.layout.data.ndims;
  std::vector<int> permutation(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) permutation[static_cast<std::size_t>(i)] = i;
  std::swap(permutation[static_cast<std::size_t>(rank - 1)],
            permutation[static_cast<std::size_t>(rank - 2)]);
  result.layout = value.layout.permute_axes(permutation);
  return result;
}

namespace {

/// A value whose last dimension lies in blocks of the machine's vectors, as a matrix of the same
/// columns; nothing for others.
std::optional<Value> blocked_rows(const Lowering& lowering, const Value& value) {
  const auto& data = value.layout.data;
  const auto& blocks = data.format_desc.blocking;
  if (data.format_kind != dnnl_blocked || blocks.inner_nblks != 1 ||
      blocks.inner_idxs[0] != data.ndims - 1 ||
      blocks.inner_blks[0] != lowering.machine().lanes()) {
    return std::nullopt;
  }
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < data.ndims; ++i) rows *= data.dims[i];
  const auto layout = view_blocks(value.layout, {rows, data.dims[data.ndims - 1]});
  if (!layout || strides_of(*layout)[0] != lowering.machine().lanes()) return std::nullopt;
  Value result = value;
  result.layout = *layout;
  return result;
}

bool is_single_matrix(const Value& value) { return all_ones(batch_of(value)); }

/// The product of rows whose elements lie in blocks with a constant matrix, by one of our kernels
/// that reads them so; nothing if there is none.
std::optional<Value> add_product_of_blocks(Lowering& lowering, const GroupContext& context,
                                           const MatmulCall& call, const Shape& result) {
  const auto rows = blocked_rows(lowering, call.a);
  if (!rows || !lowering.is_constant(call.b) || !is_single_matrix(call.b) || call.addend ||
      call.scale != 1.0F || call.type != DType::kFloat32 || rows->type != call.type ||
      call.b.type != call.type) {
    return std::nullopt;
  }
  const Shape shape = dimensions(call.b.layout);
  const Value b = lowering.reshaped(call.b, {shape[shape.size() - 2], shape.back()});
  const auto product =
      add_matrix_product(lowering, context, *rows, swapped(b), call.bias, call.wants_blocks);
  if (!product.value) return std::nullopt;
  return lowering.viewed(*product.value, result);
}

}  // namespace

Lowered<Value> add_matmul(Lowering& lowering, const GroupContext& context, const MatmulCall& call) {
  const Shape a_shape = dimensions(call.a.layout);
  const Shape b_shape = dimensions(call.b.layout);
  const std::int64_t rows = a_shape[a_shape.size() - 2];
  const std::int64_t inner = a_shape.back();
  const std::int64_t columns = b_shape.back();
  if (b_shape[b_shape.size() - 2] != inner) {
    lowering.invalid("the inner dimensions of " + shape_text(a_shape) + " and " +
                     shape_text(b_shape) + " differ");
  }
  const Shape batch = broadcast_shape(lowering, batch_of(call.a), batch_of(call.b));
  Shape result_shape = batch;
  result_shape.insert(result_shape.end(), {rows, columns});
  if (auto product = add_product_of_blocks(lowering, context, call, result_shape)) return *product;

  Value a = is_matrix_view(call.a.layout) ? call.a : lowering.plain(call.a);
  Value b = is_matrix_view(call.b.layout) ? call.b : lowering.plain(call.b);
  share_batches(lowering, a, b, batch);
  Shape target_shape = batch_of(a);
  target_shape.insert(target_shape.end(), {dimensions(a.layout)[a.layout.data.ndims - 2], columns});
  const Layout target_layout = plain_layout(target_shape, call.type);
  const bool is_float32 =
      call.type == DType::kFloat32 && a.type == call.type && b.type == call.type;
  const bool packs = lowering.is_constant(b);
  KernelChoice choice = no_own_product(packs, is_float32);
  if (packs && call.scale == 1.0F && is_float32 && !call.addend) {
    OwnProduct product =
        add_matrix_product(lowering, context, a, swapped(b), call.bias, call.wants_blocks);
    if (product.value) return lowering.viewed(*product.value, result_shape);
    choice = std::move(product.choice);
  }
  const auto describe_with = [&](const dnnl::post_ops& post) {
    const Layout right = packs ? any_layout(dimensions(b.layout), b.type) : b.layout;
    return describe(lowering, call, a.layout, right, target_layout, post);
  };
  dnnl::matmul::primitive_desc bare = describe_with({});
  if (is_reference(bare) && !(is_plain(a.layout) && is_plain(b.layout))) {
    a = lowering.plain(a);
    b = lowering.plain(b);
    bare = describe_with({});
  }
  const auto finished =
      finish_product(lowering, context, call, bare, {a, b}, target_layout, describe_with);
  if (!finished) return finished.refusal();
  if (packs) b = lowering.in_layout(b, finished->primitive.weights_desc());

  std::vector<PrimitiveOperand> reads{{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}};
  if (call.bias) {
    Shape bias(target_shape.size(), 1);
    bias.back() = columns;
    reads.push_back({DNNL_ARG_BIAS, lowering.reshaped(*call.bias, bias)});
  }
  reads.insert(reads.end(), finished->reads.begin(), finished->reads.end());
  const Value target = target_of(lowering, finished->accumulated, call.type, target_layout);
  lowering.add_primitive(finished->primitive, reads, target, std::move(choice));
  return lowering.reshaped(target, result_shape);
}

namespace {

void require_same_type(const Lowering& lowering, std::string_view argument, TensorId tensor,
                       DType dtype) {
  lowering.require_float(argument, tensor);
  if (lowering.dtype(tensor) != dtype) {
    lowering.refuse(argument, "its dtype differs from the other operand's");
  }
}

void require_rank(const Lowering& lowering, std::string_view argument, TensorId tensor,
                  std::size_t rank) {
  if (lowering.shape(tensor).size() != rank) {
    lowering.invalid("argument '" + std::string(argument) + "': expected rank " +
                     std::to_string(rank) + ", found shape " + shape_text(lowering.shape(tensor)));
  }
}

}  // namespace

namespace {

/// Whether the result of the group, [1, .., N] with `rows` rows, is only read by a
/// convolution or an interpolation that sees N as channels.
bool is_read_as_channels(const Lowering& lowering, const GroupContext& context, std::int64_t rows) {
  const Graph& graph = lowering.graph();
  TensorId value = context.group == nullptr
                       ? lowering.result()
                       : graph.node(context.group->nodes.back()).outputs.front();
  const std::int64_t channels = lowering.shape(lowering.result()).back();
  for (;;) {
    const NodeId reader = lowering.sole_reader(value);
    if (!reader.valid()) return false;
    const Node& node = graph.node(reader);
    const FusionRole role = fusion_role(node.op_type);
    if (role == FusionRole::kConv || node.op_type.starts_with("aten.upsample_")) {
      const Shape& shape = lowering.shape(value);
      return node.inputs.front() == value && shape.size() >= 3 && shape[0] == 1 &&
             shape[1] == channels && element_count(shape) == rows * channels;
    }
    if ((role != FusionRole::kPermute && role != FusionRole::kSameOrder) ||
        node.outputs.size() != 1) {
      return false;
    }
    value = node.outputs.front();
  }
}

}  // namespace

Lowered<Done> lower_linear(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "input");
  const TensorId weight = tensor_argument(lowering, node, "weight");
  const DType dtype = lowering.dtype(input);
  require_same_type(lowering, "input", input, dtype);
  require_same_type(lowering, "weight", weight, dtype);
  const Shape& weight_shape = lowering.shape(weight);
  if (weight_shape.size() != 2) {
    lowering.refuse("weight", "rank " + std::to_string(weight_shape.size()) + " is not 2");
  }
  Shape shape = lowering.shape(input);
  if (shape.empty() || shape.back() != weight_shape[1]) {
    lowering.invalid("an input of " + shape_text(shape) + " does not fit a weight of " +
                     shape_text(weight_shape));
  }
  MatmulCall call;
  call.type = context.compute_type;
  call.a = lowering.operand(input, context.compute_type);
  if (shape.size() == 1) call.a = lowering.reshaped(call.a, {1, shape[0]});
  std::optional<Value> bias_value;
  if (const auto bias = node.tensor("bias")) {
    require_same_type(lowering, "bias", *bias, dtype);
    if (lowering.shape(*bias) != Shape{weight_shape[0]}) {
      lowering.refuse("bias", "shape " + shape_text(lowering.shape(*bias)) + " is not [" +
                                  number_text(weight_shape[0]) + "]");
    }
    bias_value = lowering.operand(*bias, DType::kFloat32);
  }
  const DType weight_type = context.has_epilogue() && lowering.dtype(weight) == DType::kFloat32
                                ? DType::kFloat32
                                : context.compute_type;
  const auto folded =
      fold_norms(lowering, context, lowering.plain(lowering.operand(weight, weight_type)),
                 bias_value, 1, false);
  if (!folded) return folded.refusal();
  call.b = swapped(lowering.in_type(folded->weight, context.compute_type));
  call.bias = folded->bias;
  shape.back() = weight_shape[0];
  call.wants_blocks = is_read_as_channels(lowering, context, element_count(shape) / shape.back());
  const auto product = add_matmul(lowering, context, call);
  if (!product) return product.refusal();
  lowering.define_computed(context, lowering.result(), shape, dtype,
                           lowering.viewed(*product, shape));
  return Done{};
}

Lowered<Done> lower_shared_input(Lowering& lowering, const GroupContext& context) {
  const KernelGroup& group = *context.group;
  const Graph& graph = lowering.graph();
  const Node& first = graph.node(group.nodes.front());
  const TensorId input = first.inputs[0];
  const DType dtype = lowering.dtype(input);
  const DType type = context.compute_type;
  if (dtype == DType::kBFloat16 && type != dtype) {
    return NotFused{"without bfloat16 arithmetic every result is rounded by itself"};
  }
  // The weights, and the biases, one below the other.
  const auto stack = [&](std::size_t operand, std::int64_t width, DType as) {
    std::vector<Value> parts;
    PlainConcat call;
    std::int64_t total = 0;
    for (const NodeId id : group.nodes) {
      const Value part = lowering.plain(lowering.operand(graph.node(id).inputs[operand], as));
      const std::int64_t rows = dimensions(part.layout)[0];
      total += rows;
      call.run_bytes.push_back(rows * width * static_cast<std::int64_t>(dtype_size(as)));
      parts.push_back(part);
    }
    const Shape shape = operand == 1 ? Shape{total, width} : Shape{total};
    const Value whole = lowering.temporary(as, plain_layout(shape, as));
    lowering.add_kernel(parts, whole, std::move(call));
    return whole;
  };
  const Shape& input_shape = lowering.shape(input);
  MatmulCall call;
  call.type = type;
  call.a = lowering.operand(input, context.compute_type);
  call.b = swapped(stack(1, input_shape.back(), type));
  if (first.inputs.size() == 3) call.bias = stack(2, 1, DType::kFloat32);
  const auto product = add_matmul(lowering, context, call);
  if (!product) return product.refusal();
  const Value& whole = *product;
  std::int64_t begin = 0;
  for (const NodeId id : group.nodes) {
    const TensorId result = graph.node(id).outputs.front();
    Value part = whole;
    const Shape& shape = lowering.shape(result);
    part.offset += begin;
    part.layout = strided_layout(shape, strides_of(whole.layout), part.type);
    begin += shape.back();
    lowering.define_moved(result, shape, dtype, part);
  }
  return Done{};
}

Lowered<Done> lower_addmm(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const bool is_batched = node.node().op_type.starts_with("aten.baddbmm");
  const char* left_name = is_batched ? "batch1" : "mat1";
  const char* right_name = is_batched ? "batch2" : "mat2";
  const TensorId left = tensor_argument(lowering, node, left_name);
  const TensorId right = tensor_argument(lowering, node, right_name);
  const DType dtype = lowering.dtype(self);
  require_same_type(lowering, "self", self, dtype);
  require_same_type(lowering, left_name, left, dtype);
  require_same_type(lowering, right_name, right, dtype);
  const std::size_t rank = is_batched ? 3 : 2;
  require_rank(lowering, left_name, left, rank);
  require_rank(lowering, right_name, right, rank);
  Shape shape{lowering.shape(left)[rank - 2], lowering.shape(right)[rank - 1]};
  if (is_batched) {
    if (lowering.shape(left)[0] != lowering.shape(right)[0]) {
      lowering.invalid("batches of " + number_text(lowering.shape(left)[0]) + " and " +
                       number_text(lowering.shape(right)[0]) + " matrices differ");
    }
    shape.insert(shape.begin(), lowering.shape(left)[0]);
  }
  const Shape& self_shape = lowering.shape(self);
  if (broadcast_shape(lowering, self_shape, shape) != shape) {
    lowering.invalid("argument 'self': shape " + shape_text(self_shape) +
                     " does not broadcast to " + shape_text(shape));
  }
  const auto alpha = static_cast<float>(node.number("alpha"));
  const auto beta = static_cast<float>(node.number("beta"));

  MatmulCall call;
  call.a = lowering.operand(left, context.compute_type);
  call.b = lowering.operand(right, context.compute_type);
  call.scale = alpha;
  // Beside the plain bias, everything is kept in float32 until the sum is complete.
  std::int64_t self_elements = 1;
  for (const std::int64_t extent : self_shape) self_elements *= extent;
  const bool is_row =
      !self_shape.empty() && self_shape.back() == shape.back() && self_elements == shape.back();
  // With beta 0 NaN in self has no effect.
  if (beta != 0.0F) {
    const Value addend = lowering.operand(self, DType::kFloat32);
    const bool is_known = lowering.is_constant(addend);
    // oneDNN scales the bias, too: divided by the scale before, it has to stay in its range.
    const float ratio = alpha == 0.0F ? 0.0F : std::abs(beta / alpha);
    if (is_row && alpha == 1.0F && beta == 1.0F) {
      call.bias = addend;
    } else if (is_row && is_known && ratio >= 0x1p-20F && ratio <= 0x1p20F) {
      call.bias =
          add_binary(lowering, BinaryOp::kMultiply, addend, lowering.constant(beta / alpha), 1.0F);
    } else if (context.has_epilogue()) {
      return NotFused{"what is added to the product is no bias"};
    } else if (!is_known) {
      call.addend = addend;
      call.addend_scale = beta;
    }
  }
  const bool is_sum = beta != 0.0F && !call.bias;
  call.type = is_sum ? DType::kFloat32 : context.compute_type;
  const auto product = add_matmul(lowering, context, call);
  if (!product) return product.refusal();
  Value value = *product;
  if (is_sum && !call.addend) {
    value =
        add_binary(lowering, BinaryOp::kAdd, value, lowering.operand(self, DType::kFloat32), beta);
  }
  lowering.define_computed(context, lowering.result(), shape, dtype, value);
  return Done{};
}

Lowered<Done> lower_matmul(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const bool is_general = node.node().op_type.starts_with("aten.matmul");
  const TensorId left = tensor_argument(lowering, node, "self");
  const TensorId right = tensor_argument(lowering, node, is_general ? "other" : "mat2");
  const DType dtype = lowering.dtype(left);
  if (dtype == DType::kInt32 && lowering.dtype(right) == dtype) {
    return lower_integer_product(lowering, context, node);
  }
  require_same_type(lowering, "self", left, dtype);
  require_same_type(lowering, is_general ? "other" : "mat2", right, dtype);
  if (!is_general) {
    const std::size_t rank = node.node().op_type.starts_with("aten.mm") ? 2 : 3;
    require_rank(lowering, "self", left, rank);
    require_rank(lowering, "mat2", right, rank);
    if (rank == 3 && lowering.shape(left)[0] != lowering.shape(right)[0]) {
      lowering.invalid("batches of " + number_text(lowering.shape(left)[0]) + " and " +
                       number_text(lowering.shape(right)[0]) + " matrices differ");
    }
  }
  Shape a_shape = lowering.shape(left);
  Shape b_shape = lowering.shape(right);
  if (a_shape.empty() || b_shape.empty())
    lowering.invalid("a scalar is no operand of a matrix product");
  MatmulCall call;
  call.type = context.compute_type;
  call.a = lowering.operand(left, context.compute_type);
  call.b = lowering.operand(right, context.compute_type);
  // A vector is a row on the left and a column on the right; the dimension goes away again.
  if (a_shape.size() == 1) call.a = lowering.reshaped(call.a, {1, a_shape[0]});
  if (b_shape.size() == 1) call.b = lowering.reshaped(call.b, {b_shape[0], 1});
  const auto product = add_matmul(lowering, context, call);
  if (!product) return product.refusal();
  Shape shape = dimensions(product->layout);
  if (b_shape.size() == 1) shape.pop_back();
  if (a_shape.size() == 1) shape.erase(shape.end() - (b_shape.size() == 1 ? 1 : 2));
  lowering.define_computed(context, lowering.result(), shape, dtype,
                           lowering.reshaped(*product, shape));
  return Done{};
}

/// _grouped_mm of rows: each group of them times a matrix of its own, laid out in blocks of
/// columns, once if it is constant.
void lower_grouped_product(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId self = tensor_argument(lowering, node, "self");
  const TensorId right = tensor_argument(lowering, node, "mat2");
  const auto offsets = node.tensor("offs");
  const Shape& rows = lowering.shape(self);
  const Shape& matrices = lowering.shape(right);
  if (!offsets || rows.size() != 2 || matrices.size() != 3) {
    lowering.refuse("self", "only a matrix whose rows are grouped is supported");
  }
  if (!node.is_none("bias")) lowering.refuse("bias", "a bias is not supported");
  if (!node.is_none("out_dtype")) lowering.refuse("out_dtype", "it is not supported");
  if (matrices[1] != rows[1] || lowering.shape(*offsets) != Shape{matrices[0]}) {
    lowering.invalid("its operands do not fit");
  }
  const GroupedProduct call{matrices[0], rows[0], rows[1], matrices[2], node_text(lowering.node())};
  const Value left = lowering.plain(lowering.operand(self, DType::kFloat32));
  const Value weight = lowering.in_layout(
      swapped(lowering.strided(lowering.operand(right, DType::kFloat32))),
      lowering.blocked({matrices[0], matrices[2], matrices[1]}, DType::kFloat32));
  const Value ends = lowering.plain(cast_value(lowering, lowering.stored(*offsets), DType::kInt64));
  const Shape result{rows[0], matrices[2]};
  const Value target = lowering.temporary(DType::kFloat32, plain_layout(result, DType::kFloat32));
  lowering.add_kernel({left, weight, ends}, target, call);
  lowering.define_computed(context, lowering.result(), result, lowering.dtype(self), target);
}

}  // namespace npu::onednn
