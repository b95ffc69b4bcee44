// SPDX-License-Identifier: Apache-2.0
// What every kernel reads and writes, as a function of its fields, and which values of the fields
// it can run with. This is the other half of each `run`: a kernel that comes to read or write more
// has to say so here, and a test compares the two with guard pages around every operand.
//
// Numbers are checked in two ways. Fields have a range of their own; and what follows from them is
// computed with checks for overflow, up to kMaxOperandBytes, so that no index that a kernel
// computes overflows either. O(fields).
#include "kernels/footprint.hpp"

#include <algorithm>
#include <string>

#include "kernels/footprint_builder.hpp"

namespace npu::onednn {

namespace {

const Winograd& checked_filter(const Winograd& kernel) {
  const Winograd::Filter& filter = kernel.filter;
  const auto filters = winograd_filters(filter.taps[0], filter.taps[1], filter.stride);
  require(std::any_of(filters.begin(), filters.end(),
                      [&](const Winograd::Filter& each) {
                        return std::equal(each.tile, each.tile + 2, filter.tile);
                      }),
          "there is no such 'filter'");
  require(kernel.source_channels > 0 && kernel.source_channels % 16 == 0 &&
              kernel.target_channels > 0 && kernel.target_channels % 16 == 0,
          "channels are no multiple of 16");
  return kernel;
}

/// Transformed weights, those of the definition, and what was found out about them.
Count weights_of(const Winograd& kernel) {
  const Count channels = Count{kernel.source_channels} * kernel.target_channels;
  return channels * kernel.filter.all_weights() + channels * kernel.filter.all_taps() + 1 +
         ceil_div(kernel.target_channels, 2 * lanes_of(kernel.isa));
}

Footprint footprint(const Winograd& kernel) {
  constexpr std::int64_t kMostVectors = INT32_MAX;  // places of blocks have 32 bits
  const std::int64_t lanes = lanes_of(kernel.isa);
  checked_filter(kernel);
  require_isa(kernel.isa, VectorIsa::kAvx2);
  const Count batch = at_least_one(kernel.batch, "batch");
  require(kernel.frames >= 1 && kernel.batch % kernel.frames == 0,
          "'batch' is no multiple of 'frames'");
  const Count inputs = kernel.source_channels;
  const Count outputs = kernel.target_channels;
  const Count products = kernel.filter.products();
  Count source = batch * inputs;
  Count target = batch * outputs;
  for (int i = 0; i < 2; ++i) {
    source = source * at_least_one(kernel.source_extent[i], "source_extent");
    target = target * at_least_one(kernel.target_extent[i], "target_extent");
    require(kernel.pad[i] >= 0 && kernel.pad[i] < kernel.filter.taps[i],
            "'pad' is not below the taps");
  }
  const Count border = Count{8} * (Count{kernel.source_extent[1]} + 8);
  require(source.value() / lanes + border.value() <= kMostVectors &&
              (target + Count{1024}).value() / lanes <= kMostVectors,
          "a tensor has too many elements");
  FootprintBuilder builder;
  builder.read(source)
      .read(weights_of(kernel))
      .read_if(kernel.has_bias, outputs)
      .read_epilogue(kernel.epilogue, target)
      .write(target);
  // Transformed sources and products of 12 tiles, or of as many as stay in the L2; or 112 results
  // of all channels.
  const Count tiles = products * (inputs + 48) * 12 + (1 << 18);
  return builder.with_scratch(kernel, (tiles + Count{112} * (outputs + 160)) * kFloat);
}

Footprint footprint(const WinogradWeights& kernel) {
  const Winograd& call = checked_filter(kernel.winograd);
  require(call.threads >= 1, "'threads' is below 1");
  return FootprintBuilder()
      .read(Count{call.source_channels} * call.target_channels * call.filter.all_taps())
      .write(weights_of(call))
      .done();
}

Footprint footprint(const ImplicitGemm& kernel) {
  require_isa(kernel.isa, VectorIsa::kAvx2);
  require(kernel.source_channels > 0 && kernel.source_channels % 16 == 0,
          "'source_channels' is no multiple of 16");
  require(kernel.target_channels > 0 && kernel.target_channels % kernel.panel() == 0,
          "'target_channels' does not fill panels");
  Count source = at_least_one(kernel.batch, "batch") * kernel.source_channels;
  Count target = Count{kernel.batch} * kernel.target_channels;
  Count weights = Count{kernel.source_channels} * kernel.target_channels;
  for (int i = 0; i < 2; ++i) {
    source = source * at_least_one(kernel.source_extent[i], "source_extent");
    target = target * at_least_one(kernel.target_extent[i], "target_extent");
    weights = weights * at_least_one(kernel.taps[i], "taps");
    static_cast<void>(Count{kernel.taps[i]} * at_least_one(kernel.dilation[i], "dilation") +
                      Count{kernel.pad[i]} + Count{kernel.target_extent[i]});
  }
  FootprintBuilder builder;
  builder.read(source)
      .read(weights)
      .read_if(kernel.has_bias, kernel.target_channels)
      .read_epilogue(kernel.epilogue, target)
      .write(target);
  return builder.with_scratch(kernel, Count{1 << 13} * kFloat);
}

Footprint footprint(const GroupedConvolution& kernel) {
  require_isa(kernel.isa, VectorIsa::kAvx2);
  const std::int64_t lanes = lanes_of(kernel.isa);
  const Count groups = at_least_one(kernel.groups, "groups");
  for (const std::int64_t channels : {kernel.source_channels, kernel.target_channels}) {
    require(channels > 0 && channels % lanes == 0 && channels % groups.value() == 0,
            "channels fill no vectors, or no groups");
  }
  Count source = at_least_one(kernel.batch, "batch") * kernel.source_channels;
  Count target = Count{kernel.batch} * kernel.target_channels;
  Count weights = Count{kernel.inputs()} * kernel.target_channels;
  Count planes = Count{kernel.inputs()} * lanes;
  for (int i = 0; i < 2; ++i) {
    const Count taps = at_least_one(kernel.taps[i], "taps");
    const Count extent = at_least_one(kernel.target_extent[i], "target_extent");
    source = source * at_least_one(kernel.source_extent[i], "source_extent");
    target = target * extent;
    weights = weights * taps;
    const Count span = extent * at_least_one(kernel.stride[i], "stride") +
                       taps * at_least_one(kernel.dilation[i], "dilation");
    static_cast<void>(span + Count{kernel.pad[i]});
    planes = planes * (i == 0 ? taps * kernel.dilation[i] : span);
  }
  FootprintBuilder builder;
  builder.read(source)
      .read(weights)
      .read_if(kernel.has_bias, kernel.target_channels)
      .read_epilogue(kernel.epilogue, target)
      .write(target);
  const Count rest = (Count{2} * kernel.inputs() + kernel.target_extent[1] + 2) * lanes;
  return builder.with_scratch(kernel, (planes + rest) * kFloat);
}

const PackedGemm& checked_blocks(const PackedGemm& kernel) {
  const std::int64_t inner = kernel.use_strassen ? 32 : 16;
  const std::int64_t columns = kernel.use_strassen ? 64 : 16;
  require(kernel.inner > 0 && kernel.inner % inner == 0, "'inner' does not fill blocks");
  require(kernel.columns > 0 && kernel.columns % columns == 0, "'columns' does not fill blocks");
  return kernel;
}

/// Of one constant weight, of the three types that products read.
Count weight_size(DType type) {
  require(type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBFloat16,
          "'weight_type' is none of float32, float16 and bfloat16");
  return size_of(type);
}

Footprint footprint(const PackedGemm& kernel) {
  checked_blocks(kernel);
  require_isa(kernel.isa, VectorIsa::kAvx2);
  const Count images = at_least_one(kernel.images, "images");
  const Count rows = at_least_one(kernel.rows, "rows");
  const std::int64_t lanes = lanes_of(kernel.isa);
  const Count target = span_of(kernel.target, images, rows, kernel.columns, lanes);
  require((images * rows * kernel.columns).value() <= target.value(),
          "steps of the target repeat elements");
  FootprintBuilder builder;
  builder.read(span_of(kernel.source, images, rows, kernel.inner, lanes))
      .read(Count{kernel.inner} * kernel.columns, weight_size(kernel.weight_type))
      .read_if(kernel.has_norm, Count{2} * kernel.inner)
      .read_if(kernel.has_bias, kernel.columns)
      .read_epilogue(kernel.epilogue, target)
      .write(target);
  // Eight copies of 112 rows of a KC block, and the sums of earlier runs.
  return builder.with_scratch(kernel,
                              (Count{128} * (Count{kernel.columns} + 64) + (1 << 21)) * kFloat);
}

Footprint footprint(const PackedGemmWeights& kernel) {
  const PackedGemm& call = checked_blocks(kernel.gemm);
  require(call.threads >= 1, "'threads' is below 1");
  const Count weights = Count{call.inner} * call.columns;
  return FootprintBuilder().read(weights).write(weights).done();
}

Footprint footprint(const HalfWeights& kernel) {
  const Count count = at_least_one(kernel.count, "count");
  require(kernel.type == DType::kFloat16 || kernel.type == DType::kBFloat16,
          "'type' is neither float16 nor bfloat16");
  return FootprintBuilder().read(count).write(count, 2).done();
}

Footprint footprint(const Gemv& kernel) {
  require(kernel.rows >= 1 && kernel.rows <= Gemv::kMaxRows, "'rows' is not in 1..4");
  require(kernel.threads >= 1, "'threads' is below 1");
  const Count inner = at_least_one(kernel.inner, "inner");
  const Count columns = at_least_one(kernel.columns, "columns");
  const Count target = Count{kernel.rows} * columns;
  return FootprintBuilder()
      .read(last_of(kernel.rows, kernel.source_row) + inner)
      .read(inner * columns, weight_size(kernel.weight_type))
      .read_if(kernel.has_bias, columns)
      .read_epilogue(kernel.epilogue, target)
      .write(target)
      .done();
}

/// Elements of a matrix that begins at several offsets.
Count planes_span(const std::vector<std::int64_t>& offsets, std::size_t planes, Count rows,
                  std::int64_t row_stride, Count columns, std::int64_t column_stride) {
  require(offsets.size() == planes, "offsets are not one for each plane");
  for (const std::int64_t offset : offsets) static_cast<void>(Count{offset});
  return Count{*std::max_element(offsets.begin(), offsets.end())} + last_of(rows, row_stride) +
         last_of(columns, column_stride) + 1;
}

Footprint footprint(const Attention& kernel) {
  require(is_float(kernel.type), "a type is no float type");
  require(is_float(kernel.mask_type) || kernel.mask_type == DType::kBool,
          "'mask_type' is neither bool nor a float type");
  const Count queries = at_least_one(kernel.queries, "queries");
  const Count keys = at_least_one(kernel.keys, "keys");
  const Count width = at_least_one(kernel.width, "width");
  const Count values = at_least_one(kernel.value_width, "value_width");
  const std::size_t planes = kernel.query_offsets.size();
  require(planes > 0, "'query_offsets' is empty");
  const auto span = [&](const std::vector<std::int64_t>& offsets, Count rows, Count columns,
                        const std::int64_t* strides) {
    return planes_span(offsets, planes, rows, strides[0], columns, strides[1]);
  };
  const Count size = size_of(kernel.type);
  const std::int64_t result_strides[2]{kernel.result_row, 1};
  const Count result = span(kernel.result_offsets, queries, values, result_strides);
  require((Count{static_cast<std::int64_t>(planes)} * queries * values).value() <= result.value(),
          "results repeat elements");
  FootprintBuilder builder;
  builder.read(span(kernel.query_offsets, queries, width, kernel.query_strides), size)
      .read(span(kernel.key_offsets, keys, width, kernel.key_strides), size)
      .read(span(kernel.value_offsets, keys, values, kernel.value_strides), size);
  if (kernel.has_mask) {
    builder.read(span(kernel.mask_offsets, queries, keys, kernel.mask_strides),
                 size_of(kernel.mask_type));
  }
  if (kernel.has_factor) {
    builder.read(planes_span(kernel.factor_offsets, planes, 1, 0, 1, 0), kFloat);
  }
  builder.write(result, size);
  const Count all = (width + 16) * (keys + 16) + (keys + 16) * (values + 16) +
                    Count{48} * (width + keys + values + 48);
  return builder.with_scratch(kernel, all * kFloat);
}

Footprint footprint(const ExpandDepthwise& kernel) {
  require_isa(kernel.isa, VectorIsa::kAvx2);
  require(ExpandDepthwise::supports(kernel.taps, kernel.stride), "there are no such 'taps'");
  const std::int64_t lanes = lanes_of(kernel.isa);
  require(kernel.channels > 0 && kernel.channels % lanes == 0, "'channels' fills no vectors");
  require(!kernel.bfloat16 || (cpu_multiplies_bfloat16() && kernel.isa == VectorIsa::kAvx512),
          "'bfloat16' is more than this CPU has");
  require(kernel.isa == VectorIsa::kAvx512 || kernel.source_channels % lanes == 0,
          "'source_channels' fills no blocks");
  require(!kernel.bfloat16 || kernel.source_channels % 2 == 0, "'source_channels' is odd");
  require_no_operands(kernel.expand_epilogue);
  require_no_operands(kernel.depthwise_epilogue);
  const Count batch = at_least_one(kernel.batch, "batch");
  const Count inputs = at_least_one(kernel.source_channels, "source_channels");
  const Count channels = kernel.channels;
  Count source = batch * (Count(ceil_div(inputs.value(), lanes)) * lanes);
  Count target = batch * channels;
  Count buffer = 2 * lanes;  // floats that a thread expands at most
  for (int i = 0; i < 2; ++i) {
    const Count from = at_least_one(kernel.source_extent[i], "source_extent");
    const Count to = at_least_one(kernel.target_extent[i], "target_extent");
    source = source * from;
    target = target * to;
    require(kernel.pad[i] >= 0 && kernel.pad[i] < kernel.taps, "'pad' is not below 'taps'");
    require(last_of(to, kernel.stride).value() - kernel.pad[i] <= from.value(),
            "results lie outside the source");
    buffer = buffer * (to * kernel.stride + kernel.taps);
  }
  if (kernel.bfloat16) {
    buffer = buffer + at_least_one(kernel.target_extent[1], "target_extent") * lanes;
  }
  const Count size = size_of(kernel.bfloat16 ? DType::kBFloat16 : DType::kFloat32);
  FootprintBuilder builder;
  builder.read(source, size)
      .read(channels * inputs, size)
      .read(channels * (kernel.taps * kernel.taps))
      .read_if(kernel.expand_has_bias, channels)
      .read_if(kernel.depthwise_has_bias, channels)
      .write(target, size);
  return builder.with_scratch(kernel, buffer * kFloat);
}

Footprint footprint(const PanelWeights& kernel) {
  const Count weights =
      at_least_one(kernel.channels, "channels") * at_least_one(kernel.inner, "inner");
  require(kernel.panel > 0, "'panel' is not positive");
  require(!kernel.pairs || kernel.inner % 2 == 0, "'inner' is odd");
  return FootprintBuilder()
      .read(weights)
      .write(weights, size_of(kernel.pairs ? DType::kBFloat16 : DType::kFloat32))
      .done();
}

Footprint footprint(const SqueezeExcite& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  require(SqueezeExcite::supports(kernel.lanes, kernel.isa), "'lanes' are not those of 'isa'");
  require(kernel.channels > 0 && kernel.channels % kernel.lanes == 0,
          "'channels' does not fill blocks");
  require_no_operands({kernel.activation});
  const Count channels = kernel.channels;
  const Count hidden = at_least_one(kernel.hidden, "hidden");
  const Count elements =
      at_least_one(kernel.batch, "batch") * channels * at_least_one(kernel.spatial, "spatial");
  FootprintBuilder builder;
  builder.read(elements, size_of(kernel.type), true)
      .read(hidden * channels)
      .read(hidden * channels)
      .read_if(kernel.has_hidden_bias, hidden)
      .read_if(kernel.has_gate_bias, channels)
      .write(elements, size_of(kernel.type));
  return builder.with_scratch(kernel, (channels + hidden) * kFloat);
}

Footprint footprint(const GateWeights& kernel) {
  const Count channels = at_least_one(kernel.channels, "channels");
  const Count lanes = at_least_one(kernel.lanes, "lanes");
  const Count hidden = at_least_one(kernel.hidden, "hidden");
  return FootprintBuilder()
      .read(channels * hidden)
      .write(Count{ceil_div(channels.value(), lanes.value())} * lanes * hidden)
      .done();
}

Footprint footprint(const ScaleShift& kernel) {
  require(is_float(kernel.type) && is_float(kernel.scale_type), "a type is no float type");
  require(!kernel.has_shift || kernel.scale_type == DType::kFloat32,
          "'scale_type' is not float32, which a shift needs");
  const Count outer = at_least_one(kernel.outer, "outer");
  const Count channels =
      at_least_one(kernel.groups, "groups") * at_least_one(kernel.lanes, "lanes");
  const Count elements = outer * channels * at_least_one(kernel.spatial, "spatial");
  const Count scales = channels * (kernel.scale_by_outer ? outer : Count{1});
  const Count shifts = kernel.has_shift ? channels * 2 : channels;
  return FootprintBuilder()
      .read(elements, size_of(kernel.type), true)
      .read(std::max(scales.value(), shifts.value()), size_of(kernel.scale_type))
      .write(elements, size_of(kernel.type))
      .done();
}

Footprint footprint(const Elementwise& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder()
      .read(count, size_of(kernel.type), true)
      .write(count, size_of(kernel.type))
      .done();
}

Footprint footprint(const Softmax& kernel) {
  const Count elements = at_least_one(kernel.outer, "outer") * at_least_one(kernel.count, "count") *
                         at_least_one(kernel.inner, "inner");
  return FootprintBuilder().read(elements, kFloat, true).write(elements).done();
}

Footprint footprint(const BroadcastBinary& kernel) {
  require(is_float(kernel.type) && is_float(kernel.b_type), "a type is no float type");
  require(kernel.type == DType::kBFloat16 || kernel.b_type == DType::kFloat32,
          "'b_type' is not float32, as 'type' is");
  return FootprintBuilder()
      .read(span_of(kernel.extents, kernel.a_strides), size_of(kernel.type),
            kernel.a_strides == kernel.target_strides)
      .read(span_of(kernel.extents, kernel.b_strides), size_of(kernel.b_type))
      .write(target_span_of(kernel.extents, kernel.target_strides), size_of(kernel.type))
      .done();
}

Footprint footprint(const RmsNorm& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  const Count inner = at_least_one(kernel.inner, "inner");
  const Count elements = at_least_one(kernel.rows, "rows") * inner;
  return FootprintBuilder()
      .read(elements, size_of(kernel.type))
      .read_if(kernel.has_weight, inner)
      .write(elements, size_of(kernel.type))
      .done();
}

Footprint footprint(const WindowPool& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  Count source = at_least_one(kernel.planes, "planes");
  Count target = source;
  for (int i = 0; i < 3; ++i) {
    source = source * at_least_one(kernel.extents[i], "extents");
    target = target * static_cast<std::int64_t>(kernel.windows[i].size());
    require_windows(kernel.windows[i], kernel.extents[i]);
    require(kernel.step[i] >= 1 && kernel.step[i] <= WindowPool::kMostStep,
            "'step' is not in 1..2^30");
  }
  return FootprintBuilder()
      .read(source, size_of(kernel.type))
      .write(target, size_of(kernel.type))
      .done();
}

Footprint footprint(const MiddleReduction& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  const Count results = at_least_one(kernel.outer, "outer") * at_least_one(kernel.inner, "inner");
  return FootprintBuilder()
      .read(results * at_least_one(kernel.count, "count"), size_of(kernel.type))
      .write(results, size_of(kernel.type))
      .done();
}

Footprint footprint(const GatherRows& kernel) {
  const Count row = at_least_one(kernel.row_bytes, "row_bytes");
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder()
      .read(at_least_one(kernel.rows, "rows") * row, 1)
      .read(count, kernel.wide_indices ? 8 : 4)
      .write(count * row, 1)
      .done();
}

Footprint footprint(const Sequence& kernel) {
  const Count count = at_least_one(kernel.count, "count");
  std::int64_t last = 0;
  require(!__builtin_mul_overflow(kernel.step, kernel.count, &last) &&
              !__builtin_add_overflow(kernel.start, last, &last),
          "'step' leads out of the numbers of 64 bits");
  return FootprintBuilder().write(count, 8).done();
}

Footprint footprint(const Convert& kernel) {
  const auto converts = [](DType type) { return is_float(type) || type == DType::kFloat16; };
  require(converts(kernel.from) && converts(kernel.to) && kernel.from != kernel.to,
          "'from' and 'to' are not two of float32, bfloat16 and float16");
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder()
      .read(count, size_of(kernel.from))
      .write(count, size_of(kernel.to))
      .done();
}

Footprint footprint(const RoundToBFloat16& kernel) {
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder().read(count, kFloat, true).write(count).done();
}

Footprint footprint(const CopyBytes& kernel) {
  const Count bytes = at_least_one(kernel.bytes, "bytes");
  return FootprintBuilder().read(bytes, 1).write(bytes, 1).done();
}

Footprint footprint(const StridedCopy& kernel) {
  const std::size_t size = kernel.element_size;
  require(size == 1 || size == 2 || size == 4 || size == 8 || size == 16,
          "'element_size' is not 1, 2, 4, 8 or 16");
  const auto bytes = static_cast<std::int64_t>(size);
  return FootprintBuilder()
      .read(span_of(kernel.extents, kernel.source_strides), bytes)
      .write(target_span_of(kernel.extents, kernel.target_strides), bytes)
      .done();
}

Footprint footprint(const PaddedCopy& kernel) {
  require(is_float(kernel.type) || is_byte(kernel.type), "'type' is no float type and no byte");
  if (is_byte(kernel.type)) {
    const auto [least, most] = range_of(kernel.type);
    require(kernel.number >= static_cast<float>(least) && kernel.number <= static_cast<float>(most),
            "'number' is none of 'type'");
  }
  require(kernel.copy.element_size == dtype_size(kernel.type),
          "'element_size' is not that of 'type'");
  Footprint result = footprint(kernel.copy);
  const Count whole = at_least_one(kernel.count, "count") * size_of(kernel.type);
  const Count part =
      Count{kernel.offset} * size_of(kernel.type) + static_cast<std::int64_t>(result.write.bytes);
  require(part.value() <= whole.value(), "the copy leads out of 'count' elements");
  result.write.bytes = static_cast<std::size_t>(whole.value());
  return result;
}

Footprint footprint(const Cast& kernel) {
  require(Cast::supports(kernel.from) && Cast::supports(kernel.to), "there is no such cast");
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder()
      .read(count, size_of(kernel.from))
      .write(count, size_of(kernel.to))
      .done();
}

Footprint footprint(const PlainConcat& kernel) {
  const Count outer = at_least_one(kernel.outer, "outer");
  require(!kernel.run_bytes.empty(), "'run_bytes' is empty");
  FootprintBuilder builder;
  Count row = 0;
  for (const std::int64_t bytes : kernel.run_bytes) {
    builder.read(outer * at_least_one(bytes, "run_bytes"), 1);
    row = row + bytes;
  }
  return builder.write(outer * row, 1).done();
}

Footprint footprint(const FoldNormWeights& kernel) {
  const NormFold& fold = kernel.fold;
  const Count channels =
      at_least_one(fold.groups, "groups") * at_least_one(fold.channels, "channels");
  const Count weights =
      channels * at_least_one(fold.rows, "rows") * at_least_one(fold.inner, "inner");
  return FootprintBuilder()
      .read(weights)
      .read(channels)
      .read_if(fold.has_scale, channels)
      .write(weights)
      .done();
}

Footprint footprint(const FoldNormBias& kernel) {
  const NormFold& fold = kernel.fold;
  const Count channels =
      at_least_one(fold.groups, "groups") * at_least_one(fold.channels, "channels");
  return FootprintBuilder()
      .read(channels)
      .read(channels)
      .read_if(fold.has_scale, channels)
      .read_if(fold.has_shift, channels)
      .read_if(fold.has_bias, channels)
      .write(channels)
      .done();
}

Footprint footprint(const NormVectors& kernel) {
  const Count channels = at_least_one(kernel.channels, "channels");
  require(kernel.padded_channels >= kernel.channels, "'padded_channels' is below 'channels'");
  return FootprintBuilder()
      .read(channels)
      .read(channels)
      .read_if(kernel.has_scale, channels)
      .read_if(kernel.has_shift, channels)
      .write(Count{2} * kernel.padded_channels)
      .done();
}

}  // namespace

Footprint footprint_of(const Kernel& kernel) {
  return std::visit(
      [](const auto& each) {
        if constexpr (requires { each.isa; }) {
          require(each.isa <= cpu_vector_isa(), "'isa' is more than this CPU has");
        }
        return footprint(each);
      },
      kernel);
}

std::string kernel_refusal(const Kernel& kernel) {
  try {
    std::visit([](const auto& each) { static_cast<void>(footprint(each)); }, kernel);
    return {};
  } catch (const Error& error) {
    return error.message();
  }
}

void set_threads(Kernel& kernel, int threads) {
  std::visit(
      [&](auto& each) {
        if constexpr (requires { each.threads; }) each.threads = threads;
        if constexpr (requires { each.winograd; }) each.winograd.threads = threads;
        if constexpr (requires { each.gemm; }) each.gemm.threads = threads;
      },
      kernel);
}

}  // namespace npu::onednn
