// SPDX-License-Identifier: Apache-2.0
// Rows of embedding tables, elements by indices, and sequences of indices. O(bytes moved).
//
// Reading is shared among threads. Writing is not: of two values for one element the later one
// counts, whatever the number of threads.
#include "kernels/gather.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/elements.hpp"
#include "kernels/iteration_space.hpp"
#include "kernels/share_work.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

namespace {

/// The element of the indexed tensor that the numbers at `at` point to; -1 if one is outside.
inline std::int64_t pointed_at(const IndexedCopy& call, Addresses indices, const std::int64_t* at) {
  std::int64_t offset = 0;
  for (std::size_t k = 0; k < call.indices.size(); ++k) {
    const IndexedCopy::Index& index = call.indices[k];
    std::int64_t number = elements<std::int64_t>(indices[k])[at[k]];
    if (number < 0 && call.wraps) number += index.extent;
    if (number < 0 || number >= index.extent) return -1;
    offset += number * index.step;
  }
  return offset;
}

/// BFloat16 is added as float, truth by or, 32 bits as the type says, 64 bits as integers.
inline void add_element(const IndexedCopy& /*call*/, std::uint16_t* to, const std::uint16_t* from) {
  BFloat16 sum;
  store(sum, load(BFloat16{*to}) + load(BFloat16{*from}));
  *to = sum.bits;
}
inline void add_element(const IndexedCopy& /*call*/, std::uint8_t* to, const std::uint8_t* from) {
  *to |= *from;
}
template <typename T>
inline void add_element(const IndexedCopy& call, T* to, const T* from) {
  if (call.type == DType::kFloat32) {
    *elements<float>(static_cast<std::byte*>(static_cast<void*>(to))) +=
        *elements<float>(static_cast<const std::byte*>(static_cast<const void*>(from)));
  } else {
    *to += *from;
  }
}

template <typename T>
inline void move_element(const IndexedCopy& call, T* to, const T* from) {
  if (call.accumulates) {
    add_element(call, to, from);
  } else {
    *to = *from;
  }
}

/// One piece of a row. False if an index is outside its dimension.
template <typename T>
bool copy_piece(const IndexedCopy& call, const IndexedCopy::Operands& operands, std::int64_t row,
                std::int64_t begin, std::int64_t end) {
  const std::size_t last = call.extents.size() - 1;
  std::int64_t at[IndexedCopy::kMostIndices]{};
  std::int64_t steps[IndexedCopy::kMostIndices]{};
  std::int64_t indexed = begin * call.indexed_strides[last];
  std::int64_t other = begin * call.other_strides[last];
  bool is_run = true;
  for (std::size_t k = 0; k < call.indices.size(); ++k) {
    steps[k] = call.indices[k].strides[last];
    at[k] = begin * steps[k];
    is_run = is_run && steps[k] == 0;
  }
  for (std::size_t i = last; i > 0; --i) {
    const std::int64_t index = row % call.extents[i - 1];
    row /= call.extents[i - 1];
    indexed += index * call.indexed_strides[i - 1];
    other += index * call.other_strides[i - 1];
    for (std::size_t k = 0; k < call.indices.size(); ++k) {
      at[k] += index * call.indices[k].strides[i - 1];
    }
  }
  const T* source = elements<T>(operands.indexed);
  const T* values = elements<T>(operands.values);
  T* target = elements<T>(operands.target);
  const std::int64_t indexed_step = call.indexed_strides[last];
  const std::int64_t other_step = call.other_strides[last];
  const auto move = [&](std::int64_t from, std::int64_t to) {
    if (call.scatters) {
      move_element(call, target + from, values + to);
    } else {
      target[to] = source[from];
    }
  };
  if (is_run) {
    const std::int64_t offset = pointed_at(call, operands.indices, at);
    if (offset < 0) return false;
    indexed += offset;
    if (indexed_step == 1 && other_step == 1 && !call.accumulates) {
      const T* from = call.scatters ? values + other : source + indexed;
      T* to = target + (call.scatters ? indexed : other);
      std::memcpy(to, from, static_cast<std::size_t>(end - begin) * sizeof(T));
      return true;
    }
    for (std::int64_t i = 0; i < end - begin; ++i) {
      move(indexed + i * indexed_step, other + i * other_step);
    }
    return true;
  }
  if (call.indices.size() == 1) {  // the common case
    const IndexedCopy::Index& index = call.indices.front();
    const std::int64_t* number = elements<std::int64_t>(operands.indices[0]) + at[0];
    const std::int64_t extent = index.extent;
    const std::int64_t step = index.step;
    const std::int64_t wrap = call.wraps ? extent : 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t place = *number < 0 ? *number + wrap : *number;
      if (static_cast<std::uint64_t>(place) >= static_cast<std::uint64_t>(extent)) return false;
      move(indexed + place * step, other);
      indexed += indexed_step;
      other += other_step;
      number += steps[0];
    }
    return true;
  }
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t offset = pointed_at(call, operands.indices, at);
    if (offset < 0) return false;
    move(indexed + offset, other);
    indexed += indexed_step;
    other += other_step;
    for (std::size_t k = 0; k < call.indices.size(); ++k) at[k] += steps[k];
  }
  return true;
}

template <typename T>
bool copy_indexed(const IndexedCopy& call, const IndexedCopy::Operands& operands) {
  const std::int64_t width = call.extents.back();
  const std::int64_t total = product(call.extents);
  const std::int64_t rows = total / width;
  constexpr std::int64_t kPiece = 4096;
  const std::int64_t pieces = rows == 1 ? (width + kPiece - 1) / kPiece : 1;
  const std::int64_t length = pieces == 1 ? width : kPiece;
  if (call.scatters) {
    std::memcpy(operands.target, operands.indexed,
                static_cast<std::size_t>(call.count) * sizeof(T));
  }
  const bool is_shared = !call.scatters && total >= kParallelElements;
  std::atomic<bool> failed = false;
  share_pieces(rows * pieces, threads_for(is_shared), [&](std::int64_t i, int) {
    const std::int64_t begin = i % pieces * length;
    const std::int64_t end = std::min(width, begin + length);
    if (!copy_piece<T>(call, operands, i / pieces, begin, end)) failed = true;
  });
  return !failed;
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
  if (!done) throw Error(ErrorCode::kFailed, node + ": an index is outside its dimension");
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

}  // namespace npu::onednn
