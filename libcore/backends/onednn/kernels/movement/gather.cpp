// SPDX-License-Identifier: Apache-2.0
// Rows of embedding tables, elements by indices, and sequences of indices. O(bytes moved).
//
// Reading is shared among threads. Writing is where its places are apart along the first dimension:
// of two values for one element the later one counts, whatever the number of threads. What is
// written to where it lies already, a state in its own memory, is not copied first.
#include "kernels/movement/gather.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/iteration_space.hpp"
#include "kernels/base/share_work.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

namespace {

using Combine = IndexedCopy::Combine;

/// The place that a number states in a dimension; -1 if it is outside.
inline std::int64_t place_of(const IndexedCopy& call, std::size_t k, std::int64_t number) {
  const IndexedCopy::Index& index = call.indices[k];
  if (number < 0 && call.wraps) number += index.extent;
  return number < 0 || number >= index.extent ? -1 : number * index.step;
}

/// NaN counts as larger and as smaller than all else.
template <typename Number>
inline Number extremum(Number a, Number b, bool is_most) {
  if (b != b) return b;
  return (is_most ? a < b : b < a) ? b : a;
}

/// Integers overflow as unsigned ones do.
template <typename Number, typename T>
inline void combine_as(Combine how, T* to, const T* from) {
  Number a;
  Number b;
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, from, sizeof b);
  if (how != Combine::kAdd) {
    a = extremum(a, b, how == Combine::kMaximum);
  } else if constexpr (std::is_integral_v<Number>) {
    a = static_cast<Number>(static_cast<T>(a) + static_cast<T>(b));
  } else {
    a += b;
  }
  std::memcpy(to, &a, sizeof a);
}

inline void combine_elements(const IndexedCopy& call, std::uint8_t* to, const std::uint8_t* from) {
  const bool is_or = call.combine != Combine::kMinimum;
  *to = is_or ? *to | *from : *to & *from;  // of truth
}
inline void combine_elements(const IndexedCopy& call, std::uint16_t* to,
                             const std::uint16_t* from) {
  float sum = load(BFloat16{*to});
  const float other = load(BFloat16{*from});
  sum = call.combine == Combine::kAdd ? sum + other
                                      : extremum(sum, other, call.combine == Combine::kMaximum);
  BFloat16 result;
  store(result, sum);
  *to = result.bits;
}
inline void combine_elements(const IndexedCopy& call, std::uint32_t* to,
                             const std::uint32_t* from) {
  if (call.type == DType::kFloat32) return combine_as<float>(call.combine, to, from);
  combine_as<std::int32_t>(call.combine, to, from);
}
inline void combine_elements(const IndexedCopy& call, std::uint64_t* to,
                             const std::uint64_t* from) {
  combine_as<std::int64_t>(call.combine, to, from);
}

/// Where a row of the iteration space begins: in the indexed tensor, in the other one, and in each
/// tensor of numbers.
class RowPlace {
 public:
  RowPlace(const IndexedCopy& call, std::int64_t row) : call_(call) {
    for (std::size_t i = call.extents.size() - 1; i-- > 0;) {
      counter_[i] = row % call.extents[i];
      row /= call.extents[i];
      move(i, counter_[i]);
    }
  }
  void next() {
    for (std::size_t i = call_.extents.size() - 1; i-- > 0;) {
      move(i, 1);
      if (++counter_[i] < call_.extents[i]) return;
      move(i, -call_.extents[i]);
      counter_[i] = 0;
    }
  }

  std::int64_t indexed = 0;
  std::int64_t other = 0;
  std::int64_t at[IndexedCopy::kMostIndices]{};

 private:
  void move(std::size_t dimension, std::int64_t steps) {
    indexed += steps * call_.indexed_strides[dimension];
    other += steps * call_.other_strides[dimension];
    for (std::size_t k = 0; k < call_.indices.size(); ++k) {
      at[k] += steps * call_.indices[k].strides[dimension];
    }
  }

  const IndexedCopy& call_;
  std::int64_t counter_[kMostDimensions]{};
};

/// A row, or a piece of it: where it begins, and from an element to the next one.
struct RowPiece {
  std::int64_t indexed;
  std::int64_t other;
  std::int64_t indexed_step;
  std::int64_t other_step;
  std::int64_t count;
};

template <typename T>
inline void move_element(const IndexedCopy& call, const IndexedCopy::Operands& operands,
                         std::int64_t indexed, std::int64_t other) {
  T* target = elements<T>(operands.target);
  if (!call.scatters) {
    target[other] = elements<T>(operands.indexed)[indexed];
  } else if (call.combine == Combine::kReplace) {
    target[indexed] = elements<T>(operands.values)[other];
  } else {
    combine_elements(call, target + indexed, elements<T>(operands.values) + other);
  }
}

/// Elements that follow each other in both tensors.
template <typename T>
inline void move_run(const IndexedCopy& call, const IndexedCopy::Operands& operands,
                     std::int64_t indexed, std::int64_t other, std::int64_t length) {
  if (call.scatters && call.combine == Combine::kAdd && call.type == DType::kFloat32) {
    float* __restrict to = elements<float>(operands.target) + indexed;
    const float* __restrict from = elements<float>(operands.values) + other;
    for (std::int64_t i = 0; i < length; ++i) to[i] += from[i];
    return;
  }
  if (length == 1 || call.combine != Combine::kReplace) {
    for (std::int64_t i = 0; i < length; ++i) {
      move_element<T>(call, operands, indexed + i, other + i);
    }
    return;
  }
  const T* from = call.scatters ? elements<T>(operands.values) + other
                                : elements<T>(operands.indexed) + indexed;
  T* to = elements<T>(operands.target) + (call.scatters ? indexed : other);
  std::memcpy(to, from, static_cast<std::size_t>(length) * sizeof(T));
}

/// Without an index that changes.
template <typename T>
void copy_whole(const IndexedCopy& call, const IndexedCopy::Operands& operands,
                const RowPiece& piece) {
  if (piece.indexed_step == 1 && piece.other_step == 1) {
    move_run<T>(call, operands, piece.indexed, piece.other, piece.count);
    return;
  }
  for (std::int64_t i = 0; i < piece.count; ++i) {
    move_element<T>(call, operands, piece.indexed + i * piece.indexed_step,
                    piece.other + i * piece.other_step);
  }
}

/// Numbers of one dimension of neighbours: those that follow each other, as those of windows and
/// of borders do, are one run. False if one is outside.
template <typename T>
bool copy_runs(const IndexedCopy& call, const IndexedCopy::Operands& operands,
               const RowPiece& piece, std::int64_t extent, const std::int64_t* number) {
  for (std::int64_t i = 0; i < piece.count;) {
    const std::int64_t first = number[i];
    std::int64_t length = 1;
    while (i + length < piece.count && number[i + length] == first + length) ++length;
    const std::int64_t where = first < 0 && call.wraps ? first + extent : first;
    if (static_cast<std::uint64_t>(where) >= static_cast<std::uint64_t>(extent)) return false;
    length = std::min(length, extent - where);  // what wraps around, or is outside, is next
    move_run<T>(call, operands, piece.indexed + where, piece.other + i, length);
    i += length;
  }
  return true;
}

/// One index that changes along the row, the common case. False if a number is outside.
template <typename T>
bool copy_along(const IndexedCopy& call, const IndexedCopy::Operands& operands, RowPiece piece,
                const IndexedCopy::Index& index, const std::int64_t* number) {
  const std::int64_t stride = index.strides.back();
  const bool has_runs =
      index.step == 1 && stride == 1 && piece.other_step == 1 && piece.indexed_step == 0;
  if (has_runs) return copy_runs<T>(call, operands, piece, index.extent, number);
  const std::int64_t extent = index.extent;
  const std::int64_t wrap = call.wraps ? extent : 0;
  for (std::int64_t i = 0; i < piece.count; ++i) {
    const std::int64_t where = *number < 0 ? *number + wrap : *number;
    if (static_cast<std::uint64_t>(where) >= static_cast<std::uint64_t>(extent)) return false;
    move_element<T>(call, operands, piece.indexed + where * index.step, piece.other);
    piece.indexed += piece.indexed_step;
    piece.other += piece.other_step;
    number += stride;
  }
  return true;
}

/// One piece of a row. False if an index is outside its dimension.
template <typename T>
bool copy_piece(const IndexedCopy& call, const IndexedCopy::Operands& operands,
                const RowPlace& place, std::int64_t begin, std::int64_t end) {
  const std::size_t last = call.extents.size() - 1;
  RowPiece piece{place.indexed + begin * call.indexed_strides[last],
                 place.other + begin * call.other_strides[last], call.indexed_strides[last],
                 call.other_strides[last], end - begin};
  // Numbers that stay the same along the row are looked up once.
  const std::int64_t* numbers[IndexedCopy::kMostIndices];
  std::size_t moving[IndexedCopy::kMostIndices];
  std::size_t moves = 0;
  for (std::size_t k = 0; k < call.indices.size(); ++k) {
    const std::int64_t step = call.indices[k].strides[last];
    numbers[k] = elements<std::int64_t>(operands.indices[k]) + place.at[k] + begin * step;
    if (step != 0) {
      moving[moves++] = k;
      continue;
    }
    const std::int64_t offset = place_of(call, k, *numbers[k]);
    if (offset < 0) return false;
    piece.indexed += offset;
  }
  if (moves == 0) {
    copy_whole<T>(call, operands, piece);
    return true;
  }
  if (moves == 1) {
    const std::size_t k = moving[0];
    return copy_along<T>(call, operands, piece, call.indices[k], numbers[k]);
  }
  for (std::int64_t i = 0; i < piece.count; ++i) {
    std::int64_t from = piece.indexed;
    for (std::size_t m = 0; m < moves; ++m) {
      const std::size_t k = moving[m];
      const std::int64_t offset = place_of(call, k, *numbers[k]);
      if (offset < 0) return false;
      from += offset;
      numbers[k] += call.indices[k].strides[last];
    }
    move_element<T>(call, operands, from, piece.other);
    piece.indexed += piece.indexed_step;
    piece.other += piece.other_step;
  }
  return true;
}

/// A row of elements in pieces, or short rows several at a time.
template <typename T>
bool copy_indexed(const IndexedCopy& call, const IndexedCopy::Operands& operands) {
  const std::int64_t width = call.extents.back();
  const std::int64_t total = product(call.extents);
  const std::int64_t rows = total / width;
  constexpr std::int64_t kPiece = 4096;
  const bool is_cut = rows == 1 && width > kPiece;
  const std::int64_t length = is_cut ? kPiece : width;
  // A tensor that is overwritten where it lies needs no copy.
  if (call.scatters && operands.target != operands.indexed) {
    std::memcpy(operands.target, operands.indexed,
                static_cast<std::size_t>(call.count) * sizeof(T));
  }
  // Writes go to places apart along a dimension that no index moves.
  const bool is_apart = rows > 1 && call.indexed_strides[0] != 0 &&
                        std::all_of(call.indices.begin(), call.indices.end(),
                                    [](const auto& index) { return index.strides[0] == 0; });
  const bool is_shared = (!call.scatters || is_apart) && total >= kParallelElements;
  std::int64_t together = is_cut ? 1 : std::max<std::int64_t>(1, kPiece / width);
  if (call.scatters && is_shared) together = rows / call.extents[0];
  std::atomic<bool> failed = false;
  const auto copy_rows = [&](std::int64_t first, std::int64_t last) {
    if (is_cut) {
      const std::int64_t begin = first * length;
      const std::int64_t end = std::min(width, begin + length);
      if (!copy_piece<T>(call, operands, RowPlace(call, 0), begin, end)) failed = true;
      return;
    }
    RowPlace place(call, first);
    for (std::int64_t row = first; row < last; ++row, place.next()) {
      if (!copy_piece<T>(call, operands, place, 0, width)) failed = true;
    }
  };
  share_range(is_cut ? (width + length - 1) / length : rows, together, threads_for(is_shared),
              copy_rows);
  return !failed;
}

/// The first number that leads outside, for the message of a run that failed.
std::string first_outside(const IndexedCopy& call, const Addresses& indices) {
  const std::size_t last = call.extents.size() - 1;
  RowPlace place(call, 0);
  const std::int64_t rows = product(call.extents) / call.extents[last];
  for (std::int64_t row = 0; row < rows; ++row, place.next()) {
    for (std::int64_t i = 0; i < call.extents[last]; ++i) {
      for (std::size_t k = 0; k < call.indices.size(); ++k) {
        const std::int64_t number =
            elements<std::int64_t>(indices[k])[place.at[k] + i * call.indices[k].strides[last]];
        if (place_of(call, k, number) >= 0) continue;
        return "index " + std::to_string(number) + " is outside its dimension of " +
               std::to_string(call.indices[k].extent);
      }
    }
  }
  return "an index is outside its dimension";
}

}  // namespace

void IndexedCopy::simplify() {
  std::vector<std::vector<std::int64_t>*> lists{&other_strides, &indexed_strides};
  for (Index& index : indices) lists.push_back(&index.strides);
  simplify_space(extents, lists);
}

void IndexedCopy::run(const Operands& operands) const {
  bool done = false;
  switch (dtype_size(type)) {
    case 1:
      done = copy_indexed<std::uint8_t>(*this, operands);
      break;
    case 2:
      done = copy_indexed<std::uint16_t>(*this, operands);
      break;
    case 4:
      done = copy_indexed<std::uint32_t>(*this, operands);
      break;
    default:
      done = copy_indexed<std::uint64_t>(*this, operands);
      break;
  }
  if (!done) throw Error(ErrorCode::kFailed, node + ": " + first_outside(*this, operands.indices));
}

void GatherRows::run(const Operands& operands) const {
  const auto [table, indices, target] = operands;
  const auto index_at = [&, indices = indices](std::int64_t i) -> std::int64_t {
    return wide_indices ? elements<std::int64_t>(indices)[i] : elements<std::int32_t>(indices)[i];
  };
  for (std::int64_t i = 0; i < count; ++i) {
    if (index_at(i) >= 0 && index_at(i) < rows) continue;
    throw Error(ErrorCode::kFailed, node + ": an index is not in 0.." + std::to_string(rows - 1));
  }
  const int threads = threads_for(count * row_bytes >= 4 * kParallelElements);
  share_pieces(count, threads, [&](std::int64_t i, int) {
    std::memcpy(operands.target + i * row_bytes, operands.table + index_at(i) * row_bytes,
                static_cast<std::size_t>(row_bytes));
  });
}

void Sequence::run(const Operands& operands) const {
  for (std::int64_t i = 0; i < count; ++i) operands.target[i] = start + i * step;
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

Footprint footprint(const IndexedCopy& kernel) {
  require(is_element_size(dtype_size(kernel.type)), "'type' is none that it copies");
  require(kernel.combine == IndexedCopy::Combine::kReplace || is_float(kernel.type) ||
              is_countable(kernel.type),
          "'type' is none that it combines");
  require(!kernel.indices.empty() && kernel.indices.size() <= IndexedCopy::kMostIndices,
          "'indices' are not 1 to 8");
  const Count size = size_of(kernel.type);
  const Count other = span_of(kernel.extents, kernel.other_strides);
  Count indexed = span_of(kernel.extents, kernel.indexed_strides);
  std::vector<Count> spans;
  Count most = std::max(other.value(), kernel.count);
  for (const IndexedCopy::Index& index : kernel.indices) {
    indexed = indexed + last_of(at_least_one(index.extent, "extent"), index.step);
    spans.push_back(span_of(kernel.extents, index.strides));
    most = std::max(most.value(), spans.back().value());
  }
  require(indexed.value() <= at_least_one(kernel.count, "count").value(),
          "indices lead out of 'count' elements");
  FootprintBuilder builder;
  builder.read(kernel.count, size, kernel.scatters);
  if (kernel.scatters) {
    require(count_of(kernel.extents).value() <= most.value(), "elements are written too often");
    builder.read(other, size);
  }
  for (const Count& span : spans) builder.read(span, 8);
  if (kernel.scatters) return builder.write(kernel.count, size).done();
  return builder.write(target_span_of(kernel.extents, kernel.other_strides), size).done();
}

}  // namespace npu::onednn
