// SPDX-License-Identifier: Apache-2.0
// Questions about oneDNN memory descriptors that the v2 API leaves to the reader of its structs.
#include "program/layout.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "npu/support/error.hpp"
#include "support/checked.hpp"

namespace npu::onednn {

namespace {

using Dims = dnnl::memory::dims;

Shape at_least_one_dimension(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

const dnnl_blocking_desc_t& blocking(const Layout& layout) {
  return layout.data.format_desc.blocking;
}

/// Strides of every dimension if all inner blocks lie in one run of memory with their outer
/// dimension, as for nChw8c with one pixel; nothing otherwise.
bool equivalent_strides(const Layout& layout, std::vector<std::int64_t>& strides) {
  const auto& data = layout.data;
  if (data.format_kind != dnnl_blocked || data.extra.flags != 0 || has_padding(layout))
    return false;
  strides.assign(blocking(layout).strides, blocking(layout).strides + data.ndims);
  if (blocking(layout).inner_nblks == 0) return true;
  if (blocking(layout).inner_nblks != 1) return false;
  const auto dimension = blocking(layout).inner_idxs[0];
  const auto block = blocking(layout).inner_blks[0];
  if (data.dims[dimension] != block && strides[static_cast<std::size_t>(dimension)] != block)
    return false;
  strides[static_cast<std::size_t>(dimension)] = 1;
  return true;
}

}  // namespace

dnnl::memory::data_type primitive_type(DType type) noexcept {
  using Type = dnnl::memory::data_type;
  switch (type) {
    case DType::kBFloat16:
      return Type::bf16;
    case DType::kInt8:
      return Type::s8;
    case DType::kUInt8:
      return Type::u8;
    default:
      return Type::f32;
  }
}

std::vector<std::int64_t> row_major_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i > 1; --i) {
    const auto stride = checked_multiply(strides[i - 1], shape[i - 1]);
    if (!stride) {
      throw Error(ErrorCode::kUnsupported,
                  "a tensor of shape " + shape_text(shape) + " is too large");
    }
    strides[i - 2] = *stride;
  }
  return strides;
}

Layout plain_layout(const Shape& shape, DType type) {
  const Shape padded = at_least_one_dimension(shape);
  return strided_layout(padded, row_major_strides(padded), type);
}

Layout strided_layout(const Shape& shape, const std::vector<std::int64_t>& strides, DType type) {
  return Layout(Dims(shape.begin(), shape.end()), primitive_type(type),
                Dims(strides.begin(), strides.end()));
}

Layout any_layout(const Shape& shape, DType type) {
  return Layout(Dims(shape.begin(), shape.end()), primitive_type(type),
                dnnl::memory::format_tag::any);
}

Layout blocked_layout(const Shape& shape, DType type, std::int64_t lanes) {
  using Tag = dnnl::memory::format_tag;
  constexpr Tag kTags[][3]{{Tag::nCw4c, Tag::nCw8c, Tag::nCw16c},
                           {Tag::nChw4c, Tag::nChw8c, Tag::nChw16c},
                           {Tag::nCdhw4c, Tag::nCdhw8c, Tag::nCdhw16c}};
  const int column = lanes == 16 ? 2 : lanes == 8 ? 1 : 0;
  const Tag tag = kTags[std::clamp<std::size_t>(shape.size(), 3, 5) - 3][column];
  return Layout({shape.begin(), shape.end()}, primitive_type(type), tag);
}

Layout channels_last_layout(const Shape& shape, DType type) {
  using Tag = dnnl::memory::format_tag;
  constexpr Tag kTags[]{Tag::nwc, Tag::nhwc, Tag::ndhwc};
  return Layout({shape.begin(), shape.end()}, primitive_type(type),
                kTags[std::clamp<std::size_t>(shape.size(), 3, 5) - 3]);
}

Layout named_layout(const BoundaryLayout& boundary, const Shape& shape, DType type) {
  return boundary.lanes == 0 ? channels_last_layout(shape, type)
                             : blocked_layout(shape, type, boundary.lanes);
}

std::string_view boundary_name(const Layout& layout, DType type) {
  if (is_plain(layout)) return {};
  const Shape shape = dimensions(layout);
  const Layout own = with_type(layout, type);
  const auto* found = std::find_if(
      std::begin(kBoundaryLayouts), std::end(kBoundaryLayouts), [&](const auto& boundary) {
        return suits(boundary, shape, type) && named_layout(boundary, shape, type) == own;
      });
  return found == std::end(kBoundaryLayouts) ? std::string_view() : found->name;
}

Layout with_type(const Layout& layout, DType type) {
  Layout result = layout;
  result.data.data_type = dnnl::memory::convert_to_c(primitive_type(type));
  return result;
}

Shape dimensions(const Layout& layout) {
  return Shape(layout.data.dims, layout.data.dims + layout.data.ndims);
}

bool has_padding(const Layout& layout) {
  return !std::equal(layout.data.dims, layout.data.dims + layout.data.ndims,
                     layout.data.padded_dims);
}

bool is_strided(const Layout& layout) {
  return layout.data.format_kind == dnnl_blocked && blocking(layout).inner_nblks == 0 &&
         layout.data.extra.flags == 0 && !has_padding(layout);
}

std::vector<std::int64_t> strides_of(const Layout& layout) {
  return {blocking(layout).strides, blocking(layout).strides + layout.data.ndims};
}

namespace {

/// As view_strides, for dimensions `from` with `strides`.
std::optional<std::vector<std::int64_t>> strides_for(const Shape& from,
                                                     const std::vector<std::int64_t>& strides,
                                                     const Shape& shape) {
  struct Run {
    std::int64_t count;
    std::int64_t unit;
  };
  std::vector<Run> runs;  // pieces of memory with even steps, innermost first
  for (std::size_t i = from.size(); i > 0; --i) {
    if (from[i - 1] == 1) continue;
    if (!runs.empty() && strides[i - 1] == runs.back().count * runs.back().unit) {
      runs.back().count *= from[i - 1];
    } else {
      runs.push_back({from[i - 1], strides[i - 1]});
    }
  }
  if (runs.empty()) return row_major_strides(shape);
  std::vector<std::int64_t> result(shape.size(), 0);
  std::size_t run = 0;
  std::int64_t taken = 1;
  for (std::size_t i = shape.size(); i > 0; --i) {
    if (shape[i - 1] != 1 && taken == runs[run].count) {
      if (++run == runs.size()) return std::nullopt;
      taken = 1;
    }
    result[i - 1] = taken * runs[run].unit;
    taken *= shape[i - 1];
    if (taken > runs[run].count || runs[run].count % taken != 0) return std::nullopt;
  }
  if (run + 1 != runs.size() || taken != runs[run].count) return std::nullopt;
  return result;
}

}  // namespace

std::optional<std::vector<std::int64_t>> view_strides(const Layout& layout, const Shape& shape) {
  return strides_for(dimensions(layout), strides_of(layout), shape);
}

std::optional<Layout> view_blocks(const Layout& layout, const Shape& shape) {
  const auto& data = layout.data;
  if (data.format_kind != dnnl_blocked || blocking(layout).inner_nblks != 1 ||
      data.extra.flags != 0 || has_padding(layout) || shape.size() > DNNL_MAX_NDIMS) {
    return std::nullopt;
  }
  const Shape from = dimensions(layout);
  const std::vector<std::int64_t> strides = strides_of(layout);
  const auto blocked = static_cast<std::size_t>(blocking(layout).inner_idxs[0]);
  const auto count = [](auto begin, auto end) {
    return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
  };
  const auto old = from.begin() + static_cast<std::ptrdiff_t>(blocked);
  const auto same =
      std::find_if(shape.begin(), shape.end(), [&, front = std::int64_t{1}](auto extent) mutable {
        const bool found = extent == *old && front == count(from.begin(), old);
        front *= extent;
        return found;
      });
  if (same == shape.end()) return std::nullopt;
  const auto at = same - shape.begin();
  const auto stride = strides.begin() + static_cast<std::ptrdiff_t>(blocked);
  const auto front =
      strides_for({from.begin(), old}, {strides.begin(), stride}, {shape.begin(), same});
  const auto behind =
      strides_for({old + 1, from.end()}, {stride + 1, strides.end()}, {same + 1, shape.end()});
  if (!front || !behind) return std::nullopt;
  Layout result = layout;
  result.data.ndims = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), result.data.dims);
  std::copy(shape.begin(), shape.end(), result.data.padded_dims);
  std::fill_n(result.data.padded_offsets, shape.size(), 0);
  auto* to = result.data.format_desc.blocking.strides;
  to = std::copy(front->begin(), front->end(), to);
  *to++ = *stride;
  std::copy(behind->begin(), behind->end(), to);
  result.data.format_desc.blocking.inner_idxs[0] = at;
  return result;
}

Layout blocked_matrix(std::int64_t rows, std::int64_t columns, DType type, std::int64_t lanes) {
  const Layout planes = blocked_layout({1, columns, rows}, type, lanes).permute_axes({0, 2, 1});
  return *view_blocks(planes, {rows, columns});
}

bool is_plain(const Layout& layout) {
  std::vector<std::int64_t> strides;
  if (!equivalent_strides(layout, strides)) return false;
  std::int64_t expected = 1;
  for (int i = layout.data.ndims - 1; i >= 0; --i) {
    if (layout.data.dims[i] == 1) continue;
    if (strides[static_cast<std::size_t>(i)] != expected) return false;
    expected *= layout.data.dims[i];
  }
  return true;
}

std::int64_t span_elements(const Layout& layout) {
  switch (layout.data.data_type) {
    case dnnl_bf16:
      return static_cast<std::int64_t>(layout.get_size() / 2);
    case dnnl_s8:
    case dnnl_u8:
      return static_cast<std::int64_t>(layout.get_size());
    default:
      return static_cast<std::int64_t>(layout.get_size() / 4);
  }
}

bool is_dense(const Layout& layout) {
  if (layout.data.format_kind != dnnl_blocked || layout.data.extra.flags != 0) return false;
  std::int64_t elements = 1;
  for (int i = 0; i < layout.data.ndims; ++i) elements *= layout.data.padded_dims[i];
  return span_elements(layout) == elements;
}

Iteration iterate(const Layout& layout) {
  const auto& data = layout.data;
  const auto& blocks = blocking(layout);
  Iteration space;
  std::vector<std::int64_t> block_of(static_cast<std::size_t>(data.ndims), 1);
  for (int i = 0; i < blocks.inner_nblks; ++i) {
    block_of[static_cast<std::size_t>(blocks.inner_idxs[i])] *= blocks.inner_blks[i];
  }
  for (int i = 0; i < data.ndims; ++i) {
    const std::int64_t block = block_of[static_cast<std::size_t>(i)];
    space.extents.push_back(data.dims[i] / block);
    space.strides.push_back(blocks.strides[i]);
    space.dimension.push_back(i);
    space.step.push_back(block);
  }
  std::int64_t stride = 1;
  for (int i = blocks.inner_nblks - 1; i >= 0; --i) stride *= blocks.inner_blks[i];
  for (int i = 0; i < blocks.inner_nblks; ++i) {
    auto& block = block_of[static_cast<std::size_t>(blocks.inner_idxs[i])];
    block /= blocks.inner_blks[i];
    stride /= blocks.inner_blks[i];
    space.extents.push_back(blocks.inner_blks[i]);
    space.strides.push_back(stride);
    space.dimension.push_back(static_cast<int>(blocks.inner_idxs[i]));
    space.step.push_back(block);
  }
  return space;
}

std::vector<std::int64_t> strides_in(const Iteration& space, const Layout& layout) {
  const std::vector<std::int64_t> strides = strides_of(layout);
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < space.extents.size(); ++i) {
    const int dimension = space.dimension[i];
    const bool repeats = layout.data.dims[dimension] == 1;
    result.push_back(repeats ? 0 : strides[static_cast<std::size_t>(dimension)] * space.step[i]);
  }
  return result;
}

}  // namespace npu::onednn
