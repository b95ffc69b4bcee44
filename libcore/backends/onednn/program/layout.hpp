// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "npu/tensor/tensor.hpp"
#include "program/boundary_layout.hpp"

namespace npu::onednn {

/// A tensor's dimensions and where its elements lie. oneDNN has no 64-bit integers and no bool:
/// such tensors, and those of 16 and 32 bits, use a float32 descriptor for its dimensions and
/// strides alone, and no primitive sees it.
using Layout = dnnl::memory::desc;

/// float32 for every type but bfloat16, int8 and uint8.
dnnl::memory::data_type primitive_type(DType type) noexcept;

/// Row-major. A scalar has the one dimension 1, since oneDNN has no rank 0.
Layout plain_layout(const Shape& shape, DType type);
/// Strides in elements; one may be 0 for a dimension that repeats one element only if no primitive
/// sees it.
Layout strided_layout(const Shape& shape, const std::vector<std::int64_t>& strides, DType type);
/// The same dimensions, with oneDNN free to choose where elements lie.
Layout any_layout(const Shape& shape, DType type);
/// Channels of a tensor of rank 3 to 5 in blocks of 4, 8 or 16, as kernels like them.
Layout blocked_layout(const Shape& shape, DType type, std::int64_t lanes);
/// Channels of a tensor of rank 3 to 5 behind everything else, as kernels on int8 like them.
Layout channels_last_layout(const Shape& shape, DType type);
/// Where the elements of a tensor lie that has this one, which suits it.
Layout named_layout(const BoundaryLayout& boundary, const Shape& shape, DType type);
/// What a layout is called at a boundary; empty if it has no name or is row-major, too.
std::string_view boundary_name(const Layout& layout, DType type);
/// The same layout for another element type.
Layout with_type(const Layout& layout, DType type);

/// Strides that show a strided layout's elements with another shape in the same order and memory;
/// nothing if there are none.
std::optional<std::vector<std::int64_t>> view_strides(const Layout& layout, const Shape& shape);

/// The same for a layout with one dimension in blocks, which has to stay as it is.
std::optional<Layout> view_blocks(const Layout& layout, const Shape& shape);
/// A matrix with its columns in blocks of `lanes`, the rows of a block one after the other.
Layout blocked_matrix(std::int64_t rows, std::int64_t columns, DType type, std::int64_t lanes);

Shape dimensions(const Layout& layout);
std::vector<std::int64_t> row_major_strides(const Shape& shape);

/// True if strides alone say where elements lie: no inner blocks, padding or extra data.
bool is_strided(const Layout& layout);
/// The strides of a layout for which is_strided holds.
std::vector<std::int64_t> strides_of(const Layout& layout);
/// True if the bytes are those of the row-major tensor (also for a blocked layout that comes to the
/// same).
bool is_plain(const Layout& layout);
/// True if the elements and oneDNN's own padding fill the memory from first to last byte.
bool is_dense(const Layout& layout);
/// True if blocks do not divide the dimensions, so that memory has zeros behind the elements.
bool has_padding(const Layout& layout);
/// Elements of memory that the layout spans, padding included.
std::int64_t span_elements(const Layout& layout);

/// Dimensions and strides that visit every element of an unpadded layout, inner blocks as
/// dimensions of their own: the iteration space for kernels that must not care about blocks.
struct Iteration {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;  ///< of the layout that made the space
  std::vector<int> dimension;         ///< the logical dimension that each extent is a part of
  std::vector<std::int64_t> step;     ///< how far one step moves in that logical dimension
};
Iteration iterate(const Layout& layout);
/// Strides of a strided layout of the same rank in another's iteration space; 0 where its dimension
/// is 1.
std::vector<std::int64_t> strides_in(const Iteration& space, const Layout& layout);

}  // namespace npu::onednn
