// SPDX-License-Identifier: Apache-2.0
// oneDNN's primitives as plain numbers and back. Numbers are read from a descriptor that lowering
// has made, and another one is made from them with all layouts stated, so that nothing is left to
// oneDNN's choice but the implementation.
//
// What reads a primitive and what makes it stand beside each other. They share no list of members:
// oneDNN tells of a primitive by structs of C, and makes one by constructors that check what they
// are given.
//
// The numbers may come from a hostile file. oneDNN checks shapes against each other when it makes
// a descriptor; what it takes as it is (paddings, windows, the algorithm's number) is checked here.
#include "program/primitive_record.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "kernels/base/refuse.hpp"
#include "program/check_plan.hpp"
#include "program/implementations.hpp"
#include "program/post_ops.hpp"

namespace npu::onednn {

namespace {

using Kind = PrimitiveKind;

constexpr auto kInference = dnnl::prop_kind::forward_inference;
constexpr DType kLayoutTypes[]{DType::kFloat32, DType::kBFloat16, DType::kInt8, DType::kUInt8};

[[noreturn]] void cannot_store(const char* what) {
  throw Error(ErrorCode::kUnsupported, std::string("a blob cannot hold ") + what);
}

/// The dimension that has a scale of its own for each channel of the result; 0 for none.
int channel_mask(const PrimitiveRecord& record) {
  if (record.kind == Kind::kConvolution || record.kind == Kind::kDeconvolution) return 1 << 1;
  if (record.kind != Kind::kMatmul || record.layouts.empty()) return 0;
  return 1 << (record.layouts.back().extents.size() - 1);
}

/// An operation descriptor of oneDNN's C interface.
template <typename Descriptor>
const Descriptor& descriptor_of(const dnnl::primitive_desc_base& primitive, dnnl_query_t what) {
  const Descriptor* result = nullptr;
  if (dnnl_primitive_desc_query(primitive.get(), what, 0, &result) != dnnl_success ||
      result == nullptr) {
    cannot_store("a primitive that does not tell what it does");
  }
  return *result;
}

std::vector<std::int64_t> list_of(const dnnl_dims_t& values, std::size_t count) {
  return {values, values + count};
}

/// A list with one number for every spatial dimension, in a range.
void check_spatial(const std::vector<std::int64_t>& values, std::size_t spatial, std::int64_t least,
                   const char* name) {
  constexpr std::int64_t kMost = 1 << 24;
  const bool in_range = std::all_of(values.begin(), values.end(), [&](std::int64_t value) {
    return value >= least && value <= kMost;
  });
  if (values.size() != spatial || !in_range) {
    refuse(std::string("'") + name + "' is not in range for every spatial dimension");
  }
}

std::size_t spatial_rank(const std::vector<Layout>& layouts) {
  const int rank = layouts.front().data.ndims;
  require(rank >= 3 && rank <= 5, "its operand is not of rank 3 to 5");
  return static_cast<std::size_t>(rank - 2);
}

dnnl::algorithm algorithm_of(std::int64_t number) {
  require(number >= 0 && number <= 0xFFFFFF, "there is no algorithm of this number");
  return static_cast<dnnl::algorithm>(number);
}

void read_convolution(const dnnl_convolution_desc_t& from, PrimitiveRecord& to) {
  const auto spatial = static_cast<std::size_t>(from.src_desc.ndims - 2);
  to.algorithm = from.alg_kind;
  to.strides = list_of(from.strides, spatial);
  to.dilation = list_of(from.dilates, spatial);
  to.pad_begin = list_of(from.padding[0], spatial);
  to.pad_end = list_of(from.padding[1], spatial);
  to.has_bias = from.bias_desc.ndims != 0;
}

/// Makes a convolution or a transposed one.
template <typename Forward>
dnnl::primitive_desc_base make_convolution(const PrimitiveRecord& record,
                                           const std::vector<Layout>& layouts,
                                           dnnl::algorithm algorithm,
                                           const dnnl::primitive_attr& attributes,
                                           const dnnl::engine& engine) {
  constexpr std::int64_t kLeastPadding = -(1 << 24);
  const std::size_t spatial = spatial_rank(layouts);
  require(algorithm_of(record.algorithm) == algorithm, "it has another algorithm than the direct");
  check_spatial(record.strides, spatial, 1, "strides");
  check_spatial(record.dilation, spatial, 0, "dilation");
  check_spatial(record.pad_begin, spatial, kLeastPadding, "pad_begin");
  check_spatial(record.pad_end, spatial, kLeastPadding, "pad_end");
  const auto describe = [&](const auto&... bias) {
    return typename Forward::desc(kInference, algorithm, layouts[0], layouts[1], bias...,
                                  layouts.back(), record.strides, record.dilation, record.pad_begin,
                                  record.pad_end);
  };
  if (record.has_bias) {
    return first_right(typename Forward::primitive_desc(describe(layouts[2]), attributes, engine));
  }
  return first_right(typename Forward::primitive_desc(describe(), attributes, engine));
}

template <typename Descriptor>
void read_pooling(const Descriptor& from, PrimitiveRecord& to) {
  const auto spatial = static_cast<std::size_t>(from.src_desc.ndims - 2);
  to.algorithm = from.alg_kind;
  to.kernel = list_of(from.kernel, spatial);
  to.strides = list_of(from.strides, spatial);
  to.pad_begin = list_of(from.padding[0], spatial);
  to.pad_end = list_of(from.padding[1], spatial);
}

dnnl::primitive_desc_base make_pooling(const PrimitiveRecord& record,
                                       const std::vector<Layout>& layouts,
                                       const dnnl::primitive_attr& attributes,
                                       const dnnl::engine& engine) {
  const std::size_t spatial = spatial_rank(layouts);
  const dnnl::algorithm algorithm = algorithm_of(record.algorithm);
  require(algorithm == dnnl::algorithm::pooling_max ||
              algorithm == dnnl::algorithm::pooling_avg_include_padding ||
              algorithm == dnnl::algorithm::pooling_avg_exclude_padding,
          "it has another algorithm than maxima and means");
  const bool dilates = record.kind == Kind::kDilatedPooling;
  check_spatial(record.kernel, spatial, 1, "kernel");
  check_spatial(record.strides, spatial, 1, "strides");
  check_spatial(record.pad_begin, spatial, 0, "pad_begin");
  check_spatial(record.pad_end, spatial, 0, "pad_end");
  check_spatial(record.dilation, dilates ? spatial : 0, 0, "dilation");
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t span = (record.kernel[i] - 1) * (dilates ? record.dilation[i] + 1 : 1) + 1;
    require(record.pad_begin[i] < span && record.pad_end[i] < span &&
                span <= layouts.front().data.dims[i + 2] + record.pad_begin[i] + record.pad_end[i],
            "a window does not meet the operand");
  }
  if (dilates) {
    const dnnl::pooling_v2_forward::desc descriptor(kInference, algorithm, layouts[0], layouts[1],
                                                    record.strides, record.kernel, record.dilation,
                                                    record.pad_begin, record.pad_end);
    return dnnl::pooling_v2_forward::primitive_desc(descriptor, attributes, engine);
  }
  const dnnl::pooling_forward::desc descriptor(kInference, algorithm, layouts[0], layouts[1],
                                               record.strides, record.kernel, record.pad_begin,
                                               record.pad_end);
  return dnnl::pooling_forward::primitive_desc(descriptor, attributes, engine);
}

/// The dimension that a concatenation joins: the one in which the result is longer.
std::int64_t joined_dimension(const Layout& part, const Layout& whole) {
  for (int i = 0; i < whole.data.ndims; ++i) {
    if (part.data.dims[i] != whole.data.dims[i]) return i;
  }
  return 0;
}

void read_layer_norm(const dnnl::primitive_desc_base& primitive, PrimitiveRecord& to) {
  const auto& from =
      descriptor_of<dnnl_layer_normalization_desc_t>(primitive, dnnl_query_layer_normalization_d);
  constexpr unsigned kKnown = dnnl_use_scale | dnnl_use_shift;
  if ((from.flags & ~kKnown) != 0) cannot_store("a layer norm with these flags");
  to.kind = Kind::kLayerNorm;
  to.alpha = from.layer_norm_epsilon;
  to.has_scale = (from.flags & dnnl_use_scale) != 0;
  to.has_shift = (from.flags & dnnl_use_shift) != 0;
}

dnnl::primitive_desc_base make_layer_norm(const PrimitiveRecord& record, const Layout& source,
                                          const dnnl::primitive_attr& attributes,
                                          const dnnl::engine& engine) {
  auto flags = dnnl::normalization_flags::none;
  if (record.has_scale) flags |= dnnl::normalization_flags::use_scale;
  if (record.has_shift) flags |= dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward::desc descriptor(kInference, source, record.alpha, flags);
  return dnnl::layer_normalization_forward::primitive_desc(descriptor, attributes, engine);
}

dnnl::primitive_desc_base make_matmul(const PrimitiveRecord& record,
                                      const std::vector<Layout>& layouts,
                                      const dnnl::primitive_attr& attributes,
                                      const dnnl::engine& engine) {
  if (record.has_bias) {
    return first_right(dnnl::matmul::primitive_desc(
        {layouts[0], layouts[1], layouts[2], layouts.back()}, attributes, engine));
  }
  return first_right(
      dnnl::matmul::primitive_desc({layouts[0], layouts[1], layouts.back()}, attributes, engine));
}

void read_operation(const Step& step, PrimitiveRecord& to) {
  const dnnl::primitive_desc_base& primitive = step.primitive;
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  dnnl_primitive_desc_query(primitive.get(), dnnl_query_primitive_kind, 0, &kind);
  switch (kind) {
    case dnnl_convolution:
      to.kind = Kind::kConvolution;
      return read_convolution(
          descriptor_of<dnnl_convolution_desc_t>(primitive, dnnl_query_convolution_d), to);
    case dnnl_deconvolution:
      to.kind = Kind::kDeconvolution;
      return read_convolution(
          descriptor_of<dnnl_deconvolution_desc_t>(primitive, dnnl_query_deconvolution_d), to);
    case dnnl_pooling:
      to.kind = Kind::kPooling;
      return read_pooling(descriptor_of<dnnl_pooling_desc_t>(primitive, dnnl_query_pooling_d), to);
    case dnnl_pooling_v2: {
      const auto& from = descriptor_of<dnnl_pooling_v2_desc_t>(primitive, dnnl_query_pooling_v2_d);
      to.kind = Kind::kDilatedPooling;
      read_pooling(from, to);
      to.dilation = list_of(from.dilation, to.kernel.size());
      return;
    }
    case dnnl_matmul:
      to.kind = Kind::kMatmul;
      to.has_bias =
          descriptor_of<dnnl_matmul_desc_t>(primitive, dnnl_query_matmul_d).bias_desc.ndims != 0;
      return;
    case dnnl_layer_normalization:
      return read_layer_norm(primitive, to);
    case dnnl_concat:
      to.kind = Kind::kConcat;
      to.axis = joined_dimension(step.layouts.front(), step.layouts[step.read_count]);
      return;
    case dnnl_reorder:
      to.kind = Kind::kReorder;
      return;
    case dnnl_eltwise: {
      const auto& from = descriptor_of<dnnl_eltwise_desc_t>(primitive, dnnl_query_eltwise_d);
      to.kind = Kind::kEltwise;
      to.algorithm = from.alg_kind;
      to.alpha = from.alpha;
      to.beta = from.beta;
      return;
    }
    case dnnl_binary:
      to.kind = Kind::kBinary;
      to.algorithm = descriptor_of<dnnl_binary_desc_t>(primitive, dnnl_query_binary_d).alg_kind;
      return;
    default:
      cannot_store("a primitive of this kind");
  }
}

/// One factor for all results, or one for each channel.
void read_output_scales(const dnnl::primitive_attr& attributes, PrimitiveRecord& to) {
  int mask = 0;
  std::vector<float> scales;
  attributes.get_output_scales(mask, scales);
  if (mask == 0 && scales.size() == 1) {
    to.output_scale = scales.front();
  } else if (mask == channel_mask(to)) {
    to.channel_scales = std::move(scales);
  } else {
    cannot_store("scales of other dimensions than the channels");
  }
}

std::int64_t zero_point_of(const dnnl::primitive_attr& attributes, int argument) {
  int mask = 0;
  std::vector<std::int32_t> zero_points;
  attributes.get_zero_points(argument, mask, zero_points);
  if (zero_points.empty()) return 0;
  if (mask != 0 || zero_points.size() != 1) cannot_store("a zero point for each channel");
  return zero_points.front();
}

void set_zero_point(dnnl::primitive_attr& attributes, int argument, std::int64_t zero_point) {
  require(zero_point >= INT32_MIN && zero_point <= INT32_MAX, "a zero point is too large");
  if (zero_point == 0) return;
  attributes.set_zero_points(argument, 0, {static_cast<std::int32_t>(zero_point)});
}

/// The type of what is added in the memory of the result, where it is another than the result's.
DType sum_type(dnnl::memory::data_type type) {
  switch (type) {
    case dnnl::memory::data_type::undef:
      return DType::kFloat32;
    case dnnl::memory::data_type::s8:
      return DType::kInt8;
    case dnnl::memory::data_type::u8:
      return DType::kUInt8;
    default:
      cannot_store("a sum with this type");
  }
}

float only_scale(int mask, const std::vector<float>& scales) {
  if (mask != 0 || scales.size() != 1) cannot_store("a scale for each channel");
  return scales.front();
}

void read_attributes(const dnnl::primitive_desc_base& primitive, PrimitiveRecord& to) {
  const dnnl::primitive_attr attributes = primitive.get_primitive_attr();
  read_output_scales(attributes, to);
  to.source_zero_point = zero_point_of(attributes, DNNL_ARG_SRC);
  to.weights_zero_point = zero_point_of(attributes, DNNL_ARG_WEIGHTS);
  to.target_zero_point = zero_point_of(attributes, DNNL_ARG_DST);
  if (to.kind == Kind::kBinary) {
    int mask = 0;
    std::vector<float> scales;
    attributes.get_scales(DNNL_ARG_SRC_1, mask, scales);
    to.right_scale = only_scale(mask, scales);
  }
  const dnnl::post_ops operations = attributes.get_post_ops();
  for (int i = 0; i < operations.len(); ++i) {
    PostOpRecord& record = to.post_ops.emplace_back();
    dnnl::algorithm algorithm{};
    dnnl::memory::desc operand;
    float scale = 1.0F;
    switch (operations.kind(i)) {
      case dnnl::primitive::kind::eltwise:
        operations.get_params_eltwise(i, scale, algorithm, record.alpha, record.beta);
        if (scale != 1.0F) cannot_store("a scaled post-op");
        break;
      case dnnl::primitive::kind::sum: {
        record.kind = PostOpRecord::Kind::kSum;
        std::int32_t zero_point = 0;
        dnnl::memory::data_type type{};
        operations.get_params_sum(i, record.alpha, zero_point, type);
        record.zero_point = zero_point;
        record.type = sum_type(type);
        break;
      }
      case dnnl::primitive::kind::binary:
        record.kind = PostOpRecord::Kind::kBinary;
        operations.get_params_binary(i, algorithm, operand);
        break;
      default:
        cannot_store("a post-op of this kind");
    }
    record.algorithm = static_cast<std::int64_t>(algorithm);
  }
}

dnnl::primitive_attr attributes_of(const PrimitiveRecord& record,
                                   const std::vector<Layout>& layouts) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (record.output_scale != 1.0F) attributes.set_output_scales(0, {record.output_scale});
  if (!record.channel_scales.empty()) {
    const int channel = channel_mask(record);
    const auto& extents = record.layouts.back().extents;
    const std::size_t axis = record.kind == Kind::kMatmul ? extents.size() - 1 : 1;
    require(channel != 0 && axis < extents.size() &&
                static_cast<std::int64_t>(record.channel_scales.size()) == extents[axis],
            "it has not one scale for each channel");
    attributes.set_output_scales(channel, record.channel_scales);
  }
  set_zero_point(attributes, DNNL_ARG_SRC, record.source_zero_point);
  set_zero_point(attributes, DNNL_ARG_WEIGHTS, record.weights_zero_point);
  set_zero_point(attributes, DNNL_ARG_DST, record.target_zero_point);
  if (record.right_scale != 1.0F) {
    require(record.kind == Kind::kBinary, "it has no second operand to scale");
    attributes.set_scales(DNNL_ARG_SRC_1, 0, {record.right_scale});
  }
  if (record.post_ops.empty()) return attributes;
  const auto binaries = std::count_if(
      record.post_ops.begin(), record.post_ops.end(),
      [](const PostOpRecord& each) { return each.kind == PostOpRecord::Kind::kBinary; });
  // Their operands are read last, in front of the result.
  require(binaries < static_cast<std::ptrdiff_t>(layouts.size()), "its post-ops have no operands");
  const std::span operands(layouts.end() - 1 - binaries, layouts.end() - 1);
  attributes.set_post_ops(make_post_ops(record.post_ops, operands));
  return attributes;
}

dnnl::primitive_desc_base make_of_kind(const PrimitiveRecord& record,
                                       const std::vector<Layout>& layouts,
                                       const dnnl::engine& engine) {
  const dnnl::primitive_attr attributes = attributes_of(record, layouts);
  const Layout& source = layouts.front();
  const int axis = static_cast<int>(record.axis);
  switch (record.kind) {
    case Kind::kConvolution:
      return make_convolution<dnnl::convolution_forward>(
          record, layouts, dnnl::algorithm::convolution_direct, attributes, engine);
    case Kind::kDeconvolution:
      return make_convolution<dnnl::deconvolution_forward>(
          record, layouts, dnnl::algorithm::deconvolution_direct, attributes, engine);
    case Kind::kPooling:
    case Kind::kDilatedPooling:
      return make_pooling(record, layouts, attributes, engine);
    case Kind::kMatmul:
      return make_matmul(record, layouts, attributes, engine);
    case Kind::kLayerNorm:
      return make_layer_norm(record, source, attributes, engine);
    case Kind::kConcat:
      return dnnl::concat::primitive_desc(layouts.back(), axis,
                                          {layouts.begin(), layouts.end() - 1}, engine, attributes);
    case Kind::kReorder:
      return dnnl::reorder::primitive_desc(engine, source, engine, layouts.back(), attributes);
    case Kind::kEltwise:
      return dnnl::eltwise_forward::primitive_desc(
          {kInference, algorithm_of(record.algorithm), source, record.alpha, record.beta},
          attributes, engine);
    case Kind::kBinary:
      return dnnl::binary::primitive_desc(
          {algorithm_of(record.algorithm), source, layouts[1], layouts.back()}, attributes, engine);
  }
  refuse("there is no such primitive");
}

}  // namespace

LayoutRecord record_of(const Layout& layout) {
  const auto& data = layout.data;
  const auto& blocks = data.format_desc.blocking;
  LayoutRecord record;
  const auto type = std::find_if(std::begin(kLayoutTypes), std::end(kLayoutTypes), [&](DType each) {
    return dnnl::memory::convert_to_c(primitive_type(each)) == data.data_type;
  });
  if (data.format_kind != dnnl_blocked || data.offset0 != 0 || type == std::end(kLayoutTypes)) {
    cannot_store("a layout that is more than strides and blocks");
  }
  const auto rank = static_cast<std::size_t>(data.ndims);
  record.type = *type;
  record.extents = list_of(data.dims, rank);
  record.strides = list_of(blocks.strides, rank);
  record.inner_blocks = list_of(blocks.inner_blks, static_cast<std::size_t>(blocks.inner_nblks));
  record.inner_dimensions =
      list_of(blocks.inner_idxs, static_cast<std::size_t>(blocks.inner_nblks));
  record.sums = static_cast<std::int64_t>(data.extra.flags);
  if ((record.sums & kSignSums) != 0) record.sign_mask = data.extra.compensation_mask;
  if ((record.sums & kZeroPointSums) != 0) {
    record.zero_point_mask = data.extra.asymm_compensation_mask;
  }
  if (record.sums != 0) {
    const std::size_t whole = layout.get_size();
    const std::size_t elements = checked_span(record);
    record.sum_bytes = static_cast<std::int64_t>(whole > elements ? whole - elements : 0);
  }
  if (layout_of(record) != layout) cannot_store("a layout with padding of its own");
  return record;
}

Layout layout_of(const LayoutRecord& record) {
  const std::size_t bytes = checked_span(record);
  dnnl_memory_desc_t data{};
  auto& blocks = data.format_desc.blocking;
  data.ndims = static_cast<int>(record.extents.size());
  data.data_type = dnnl::memory::convert_to_c(primitive_type(record.type));
  data.format_kind = dnnl_blocked;
  std::copy(record.extents.begin(), record.extents.end(), data.dims);
  std::copy(record.strides.begin(), record.strides.end(), blocks.strides);
  blocks.inner_nblks = static_cast<int>(record.inner_blocks.size());
  std::copy(record.inner_blocks.begin(), record.inner_blocks.end(), blocks.inner_blks);
  std::copy(record.inner_dimensions.begin(), record.inner_dimensions.end(), blocks.inner_idxs);
  for (int i = 0; i < data.ndims; ++i) {
    std::int64_t block = 1;
    for (int j = 0; j < blocks.inner_nblks; ++j) {
      if (blocks.inner_idxs[j] == i) block *= blocks.inner_blks[j];
    }
    data.padded_dims[i] = (data.dims[i] + block - 1) / block * block;
  }
  if (record.sums != 0) {
    data.extra.flags = static_cast<std::uint64_t>(record.sums);
    data.extra.compensation_mask = static_cast<int>(record.sign_mask);
    data.extra.scale_adjust = (record.sums & kSignScale) != 0 ? 1.0F : 0.0F;
    data.extra.asymm_compensation_mask = static_cast<int>(record.zero_point_mask);
  }
  const Layout layout(data);
  // Of views with gaps oneDNN counts the last gap, too; weights with sums have none.
  require(record.sums == 0 || layout.get_size() <= bytes,
          "a layout's sums are larger than it says");
  return layout;
}

std::vector<int> arguments_of(const PrimitiveRecord& record) {
  std::vector<int> result;
  switch (record.kind) {
    case Kind::kConcat:
      for (std::size_t i = 0; i + 1 < record.layouts.size(); ++i) {
        result.push_back(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i));
      }
      break;
    case Kind::kBinary:
      result = {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1};
      break;
    case Kind::kConvolution:
    case Kind::kDeconvolution:
    case Kind::kMatmul:
      result = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS};
      if (record.has_bias) result.push_back(DNNL_ARG_BIAS);
      break;
    default:
      result = {DNNL_ARG_SRC};
      if (record.has_scale) result.push_back(DNNL_ARG_SCALE);
      if (record.has_shift) result.push_back(DNNL_ARG_SHIFT);
  }
  for (std::size_t i = 0; i < record.post_ops.size(); ++i) {
    if (record.post_ops[i].kind != PostOpRecord::Kind::kBinary) continue;
    result.push_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1);
  }
  result.push_back(DNNL_ARG_DST);
  return result;
}

PrimitiveRecord record_of_primitive(const Step& step) {
  PrimitiveRecord record;
  const std::size_t operands = step.read_count + 1;
  for (std::size_t i = 0; i < operands; ++i) record.layouts.push_back(record_of(step.layouts[i]));
  read_operation(step, record);
  read_attributes(step.primitive, record);
  const std::vector<int> arguments = arguments_of(record);
  if (arguments.size() != operands ||
      !std::equal(arguments.begin(), arguments.end(), step.arguments.begin())) {
    cannot_store("a primitive with these operands");
  }
  return record;
}

dnnl::primitive_desc_base make_primitive(const PrimitiveRecord& record,
                                         const dnnl::engine& engine) {
  constexpr std::size_t kMaxOperands = 1000;
  require(record.layouts.size() >= 2 && record.layouts.size() <= kMaxOperands,
          "it has no operands, or too many");
  const std::vector<int> arguments = arguments_of(record);
  require(arguments.size() == record.layouts.size(), "its layouts are not those of its operands");
  require(record.axis >= 0 &&
              record.axis < static_cast<std::int64_t>(record.layouts.front().extents.size()),
          "'axis' is none of its operand's");
  std::vector<Layout> layouts;
  for (const LayoutRecord& layout : record.layouts) layouts.push_back(layout_of(layout));
  try {
    dnnl::primitive_desc_base primitive = make_of_kind(record, layouts, engine);
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      require(primitive.query_md(dnnl::query::exec_arg_md, arguments[i]) == layouts[i],
              "an operand has another layout than its primitive");
    }
    return primitive;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw;
    refuse("oneDNN makes no such primitive on this CPU: " + std::string(error.what()));
  }
}

}  // namespace npu::onednn
