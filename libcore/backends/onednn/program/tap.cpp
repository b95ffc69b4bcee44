// SPDX-License-Identifier: Apache-2.0
// Copies an intermediate result out of the memory that a run works in. Where an element lies is a
// sum of one number for each dimension, whatever the blocks, so that a table for each is enough to
// walk any layout. It is for comparing, not for speed: one element after the other.
#include "program/tap.hpp"

#include <cstring>

#include "kernels/base/refuse.hpp"
#include "kernels/movement/copies.hpp"
#include "program/check_plan.hpp"
#include "support/checked.hpp"

namespace npu::onednn {
namespace {

bool is_converted(DType type) {
  return type == DType::kFloat32 || type == DType::kBFloat16 || type == DType::kFloat16;
}

/// How far each index of one dimension is from the first, in elements.
std::vector<std::int64_t> offsets_of(const LayoutRecord& layout, std::size_t dimension) {
  const auto is_of_it = [&](std::size_t block) {
    return layout.inner_dimensions[block] == static_cast<std::int64_t>(dimension);
  };
  std::int64_t own = 1;  // elements of this dimension in a block
  std::int64_t all = 1;
  for (std::size_t b = 0; b < layout.inner_blocks.size(); ++b) {
    if (is_of_it(b)) own *= layout.inner_blocks[b];
    all *= layout.inner_blocks[b];
  }
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < layout.extents[dimension]; ++i) {
    std::int64_t offset = i / own * layout.strides[dimension];
    std::int64_t rest = i % own;
    std::int64_t size = own;
    std::int64_t stride = all;
    for (std::size_t b = 0; b < layout.inner_blocks.size(); ++b) {
      stride /= layout.inner_blocks[b];
      if (!is_of_it(b)) continue;
      size /= layout.inner_blocks[b];
      offset += rest / size * stride;
      rest %= size;
    }
    offsets.push_back(offset);
  }
  return offsets;
}

/// Elements of kBytes, in the order of the extents.
template <std::size_t kBytes>
void gather(const LayoutRecord& layout, const std::byte* source, std::byte* target) {
  std::vector<std::vector<std::int64_t>> offsets;
  for (std::size_t d = 0; d < layout.extents.size(); ++d) offsets.push_back(offsets_of(layout, d));
  const std::vector<std::int64_t>& inner = offsets.back();
  std::vector<std::size_t> index(offsets.size(), 0);
  for (;;) {
    std::int64_t base = 0;
    for (std::size_t d = 0; d + 1 < index.size(); ++d) base += offsets[d][index[d]];
    for (const std::int64_t offset : inner) {
      std::memcpy(target, source + (base + offset) * static_cast<std::int64_t>(kBytes), kBytes);
      target += kBytes;
    }
    std::size_t d = index.size() - 1;
    while (d > 0 && ++index[d - 1] == offsets[d - 1].size()) index[--d] = 0;
    if (d == 0) return;
  }
}

void gather_elements(const TapRecord& tap, const std::byte* source, std::byte* target) {
  switch (dtype_size(tap.type)) {
    case 1:
      return gather<1>(tap.layout, source, target);
    case 2:
      return gather<2>(tap.layout, source, target);
    case 4:
      return gather<4>(tap.layout, source, target);
    case 8:
      return gather<8>(tap.layout, source, target);
    default:
      return gather<16>(tap.layout, source, target);
  }
}

}  // namespace

std::size_t tap_span(const TapRecord& tap) {
  const Shape& shape = tap.tensor.shape;
  require(tap.layout.extents == (shape.empty() ? Shape{1} : shape),
          "its layout is of another shape");
  require(tap.layout.sums == 0, "its layout has sums");
  require(
      tap.type == tap.tensor.dtype || (is_converted(tap.type) && is_converted(tap.tensor.dtype)),
      "its elements are of another dtype");
  return checked_span(tap.layout) / dtype_size(tap.layout.type) * dtype_size(tap.type);
}

void copy_tap(const TapRecord& tap, const std::byte* source, std::byte* target) {
  if (tap.type == tap.tensor.dtype) return gather_elements(tap, source, target);
  const std::int64_t count = *checked_element_count(tap.tensor.shape);
  std::vector<std::byte> elements(static_cast<std::size_t>(count) * dtype_size(tap.type));
  gather_elements(tap, source, elements.data());
  Convert{tap.type, tap.tensor.dtype, count}.run({elements.data(), target});
}

}  // namespace npu::onednn
