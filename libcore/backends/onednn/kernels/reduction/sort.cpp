// SPDX-License-Identifier: Apache-2.0
// Places of the elements of rows in order, by the library's sort without memory of its own.
//
// An element of up to 32 bits, or what it is above the least of its row, becomes an unsigned number
// in the same order, in front of its place in 64 bits, so that integers are compared and equal
// elements keep their order; places of larger ones are compared by what stands there. Of a few of
// many only those are sorted. Rows are shared among threads. O(n log n) comparisons of a row, O(n +
// k log k) for k of them.
#include "kernels/reduction/sort.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

std::uint32_t order_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kSign = 0x80000000U;
  if (value != value) return UINT32_MAX;
  if (value == 0) return kSign;  // of either sign
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}
std::uint32_t order_of(BFloat16 value) { return order_of(load(value)); }
std::uint32_t order_of(std::int32_t value) {
  return static_cast<std::uint32_t>(value) ^ 0x80000000U;
}
std::uint32_t order_of(std::uint8_t value) { return value; }

template <typename Precedes>
void order_first(const SortRows& call, std::uint64_t* places, const Precedes& precedes) {
  std::uint64_t* end = places + call.count;
  std::uint64_t* kept = places + call.kept;
  if (kept != end) std::nth_element(places, kept, end, precedes);
  std::sort(places, kept, precedes);
}

/// By numbers of 32 bits in the order of the elements, in front of their places.
template <typename T, typename Order>
void sort_packed(const SortRows& call, const T* row, std::uint64_t* places, const Order& order) {
  constexpr int kPlaceBits = 32;
  const std::uint32_t flip = call.descending ? UINT32_MAX : 0;
  for (std::int64_t i = 0; i < call.count; ++i) {
    places[i] = (std::uint64_t{order(row[i]) ^ flip} << kPlaceBits) | static_cast<std::uint64_t>(i);
  }
  order_first(call, places, std::less<>());
  for (std::int64_t i = 0; i < call.kept; ++i) places[i] &= UINT32_MAX;
}

template <typename T>
void sort_row(const SortRows& call, const T* row, std::uint64_t* places) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    const auto [least, most] = std::minmax_element(row, row + call.count);
    const auto first = static_cast<std::uint64_t>(*least);
    if (static_cast<std::uint64_t>(*most) - first <= UINT32_MAX) {
      return sort_packed(call, row, places, [&](std::int64_t value) {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) - first);
      });
    }
    for (std::int64_t i = 0; i < call.count; ++i) places[i] = static_cast<std::uint64_t>(i);
    order_first(call, places, [&](std::uint64_t a, std::uint64_t b) {
      if (row[a] == row[b]) return a < b;
      return (row[a] < row[b]) != call.descending;
    });
  } else {
    sort_packed(call, row, places, [](T value) { return order_of(value); });
  }
}

template <typename T>
void sort_rows(const SortRows& call, const std::byte* source, std::byte* target) {
  auto* places = elements<std::uint64_t>(target);
  T* values = elements<T>(target + call.rows * call.count * 8);
  constexpr std::int64_t kPiece = 1024;  // elements for a thread
  const int threads = threads_for(call.rows * call.count >= kParallelElements / 8);
  share_range(call.rows, std::max<std::int64_t>(1, kPiece / call.count), threads,
              [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first; i < last; ++i) {
                  const T* row = elements<T>(source) + i * call.count;
                  std::uint64_t* places_of_row = places + i * call.count;
                  sort_row(call, row, places_of_row);
                  for (std::int64_t k = 0; call.has_values && k < call.kept; ++k) {
                    values[i * call.kept + k] = row[places_of_row[k]];
                  }
                }
              });
}

}  // namespace

void SortRows::run(const Operands& operands) const {
  const auto [source, target] = operands;
  switch (type) {
    case DType::kFloat32:
      return sort_rows<float>(*this, source, target);
    case DType::kBFloat16:
      return sort_rows<BFloat16>(*this, source, target);
    case DType::kInt32:
      return sort_rows<std::int32_t>(*this, source, target);
    case DType::kInt64:
      return sort_rows<std::int64_t>(*this, source, target);
    default:
      return sort_rows<std::uint8_t>(*this, source, target);
  }
}

Footprint footprint(const SortRows& kernel) {
  require(is_float(kernel.type) || is_countable(kernel.type), "'type' is none that it compares");
  require(kernel.count <= SortRows::kMostElements, "'count' is too large");
  require(kernel.kept >= 1 && kernel.kept <= kernel.count, "'kept' is not in 1..'count'");
  const Count elements = at_least_one(kernel.rows, "rows") * at_least_one(kernel.count, "count");
  Footprint result =
      FootprintBuilder().read(elements, size_of(kernel.type)).write(elements, 8).done();
  if (kernel.has_values) {
    const Count values = Count{kernel.rows} * kernel.kept * size_of(kernel.type);
    result.write.bytes += static_cast<std::size_t>(values.value());
  }
  return result;
}

}  // namespace npu::onednn
