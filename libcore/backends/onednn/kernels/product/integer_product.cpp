// SPDX-License-Identifier: Apache-2.0
// Exact sums of products of integers. Numbers keep their bytes, and zero points are taken from the
// sums: sum (l - a)(r - b) = sum lr - a sum r - b sum l + n ab, all modulo 2^32, which is what
// int32 is. With VNNI an instruction multiplies uint8 by int8 four at a time and adds without
// saturation, so that the left numbers are made uint8 and the right ones int8. Without it the same
// loops run on whatever vectors there are.
//
// A block of rows times two panels stays in registers over the whole inner dimension.
// O(batch * rows * inner * columns).
#include "kernels/product/integer_product.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kPanel = IntegerPanels::kColumns;
constexpr std::int64_t kWidth = 2 * kPanel;  ///< columns of a block
constexpr std::int64_t kBlockRows = 8;       ///< rows of a block
constexpr std::int64_t kPieceRows = 64;      ///< rows of a thread's piece
constexpr std::int64_t kParallelProducts = 1 << 17;

std::uint32_t unsigned_of(std::int64_t number) { return static_cast<std::uint32_t>(number); }

// ---- Rows

/// The position of a tap in front of, in, or behind the source.
struct Place {
  std::int64_t at[3];
};

bool is_inside(const IntegerRows& call, const Place& place) {
  for (int i = 0; i < 3; ++i) {
    if (place.at[i] < 0 || place.at[i] >= call.extents[i]) return false;
  }
  return true;
}

std::int64_t element_at(const IntegerRows& call, std::int64_t image, const Place& place) {
  std::int64_t pixel = image;
  for (int i = 0; i < 3; ++i) pixel = pixel * call.extents[i] + place.at[i];
  return pixel * call.channels;
}

/// Calls visit(element of the source, or -1 outside) for each tap of a window.
template <typename Visit>
void for_each_tap(const IntegerRows& call, std::int64_t image, std::int64_t window,
                  const Visit& visit) {
  const std::int64_t x = window % call.windows[2];
  const std::int64_t y = window / call.windows[2] % call.windows[1];
  const std::int64_t z = window / call.windows[2] / call.windows[1];
  const std::int64_t spots[3]{z, y, x};
  for (std::int64_t i = 0; i < call.taps[0]; ++i) {
    for (std::int64_t j = 0; j < call.taps[1]; ++j) {
      for (std::int64_t k = 0; k < call.taps[2]; ++k) {
        const std::int64_t steps[3]{i, j, k};
        Place place{};
        for (int d = 0; d < 3; ++d) {
          place.at[d] = spots[d] * call.stride[d] - call.pad[d] + steps[d] * call.dilation[d];
        }
        visit(is_inside(call, place) ? element_at(call, image, place) : -1);
      }
    }
  }
}

void make_byte_row(const IntegerRows& call, const std::uint8_t* source, std::uint8_t zero,
                   std::int64_t image, std::int64_t window, std::uint8_t* target,
                   std::int32_t& sum) {
  const std::int64_t width = call.channels / call.groups;
  const std::uint8_t flip = call.type == DType::kInt8 ? 128 : 0;
  std::uint8_t* to = target;
  for_each_tap(call, image, window, [&](std::int64_t element) {
    if (element < 0) {
      std::fill_n(to, width, static_cast<std::uint8_t>(zero ^ flip));
    } else {
      const std::uint8_t* from = source + element;
      for (std::int64_t c = 0; c < width; ++c) to[c] = static_cast<std::uint8_t>(from[c] ^ flip);
    }
    to += width;
  });
  std::uint32_t total = 0;
  for (const std::uint8_t* at = target; at != to; ++at) total += *at;
  sum = static_cast<std::int32_t>(total);
  std::fill(to, target + padded_inner(call.type, call.inner()), std::uint8_t{0});
}

void make_wide_row(const IntegerRows& call, const std::int32_t* source, std::int32_t zero,
                   std::int64_t image, std::int64_t window, std::int32_t* target) {
  const std::int64_t width = call.channels / call.groups;
  for_each_tap(call, image, window, [&](std::int64_t element) {
    if (element < 0) {
      std::fill_n(target, width, zero);
    } else {
      std::copy_n(source + element, width, target);
    }
    target += width;
  });
}

// ---- Products

/// Some rows times two panels, without zero points.
struct Block {
  const std::uint8_t* left;  ///< rows `left_row` apart
  std::int64_t left_row;
  const std::int8_t* right;  ///< two panels `right_panel` apart
  std::int64_t right_panel;
  std::int64_t fours;  ///< of the inner dimension
  std::int32_t* sums;  ///< [rows, kWidth]
};

template <int kRows>
void multiply_anywhere(const Block& block) {
  std::uint32_t sums[kRows][kWidth] = {};
  for (std::int64_t k = 0; k < block.fours; ++k) {
    for (int r = 0; r < kRows; ++r) {
      const std::uint8_t* left = block.left + r * block.left_row + 4 * k;
      for (std::int64_t p = 0; p < 2; ++p) {
        const std::int8_t* right = block.right + p * block.right_panel + 4 * kPanel * k;
        for (std::int64_t c = 0; c < kPanel; ++c) {
          const std::int32_t sum = left[0] * right[4 * c] + left[1] * right[4 * c + 1] +
                                   left[2] * right[4 * c + 2] + left[3] * right[4 * c + 3];
          sums[r][p * kPanel + c] += static_cast<std::uint32_t>(sum);
        }
      }
    }
  }
  std::memcpy(block.sums, sums, sizeof sums);
}

#if NPU_HAS_X86
#define NPU_TARGET_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

template <int kRows>
NPU_TARGET_VNNI void multiply_vnni(const Block& block) {
  __m512i sums[kRows][2];
  for (int r = 0; r < kRows; ++r) {
    for (auto& sum : sums[r]) sum = _mm512_setzero_si512();
  }
  for (std::int64_t k = 0; k < block.fours; ++k) {
    const std::int8_t* right = block.right + 4 * kPanel * k;
    const __m512i first = _mm512_loadu_si512(right);
    const __m512i second = _mm512_loadu_si512(right + block.right_panel);
    for (int r = 0; r < kRows; ++r) {
      std::int32_t four = 0;
      std::memcpy(&four, block.left + r * block.left_row + 4 * k, sizeof four);
      const __m512i left = _mm512_set1_epi32(four);
      sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], left, first);
      sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], left, second);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    _mm512_storeu_si512(block.sums + r * kWidth, sums[r][0]);
    _mm512_storeu_si512(block.sums + r * kWidth + kPanel, sums[r][1]);
  }
}
#endif

using Multiply = void (*)(const Block& block);

template <int kRows>
Multiply multiply_of(bool uses_vnni) {
#if NPU_HAS_X86
  if (uses_vnni) return multiply_vnni<kRows>;
#endif
  static_cast<void>(uses_vnni);
  return multiply_anywhere<kRows>;
}

Multiply multiply_rows(std::int64_t rows, bool uses_vnni) {
  switch (rows) {
    case 1:
      return multiply_of<1>(uses_vnni);
    case 2:
      return multiply_of<2>(uses_vnni);
    case 3:
      return multiply_of<3>(uses_vnni);
    case 4:
      return multiply_of<4>(uses_vnni);
    case 5:
      return multiply_of<5>(uses_vnni);
    case 6:
      return multiply_of<6>(uses_vnni);
    case 7:
      return multiply_of<7>(uses_vnni);
    default:
      return multiply_of<kBlockRows>(uses_vnni);
  }
}

/// What the zero points of a block's columns make of sums.
struct ColumnTerms {
  std::uint32_t zeros[kWidth];  ///< of the columns
  std::uint32_t sums[kWidth];   ///< of the columns' numbers
};

struct ProductOfBytes {
  const IntegerProduct& call;
  const IntegerProduct::Operands& operands;
  std::int64_t padded = padded_inner(DType::kUInt8, call.inner);
  std::int64_t panels = ceil_div(call.columns, kPanel);
  const std::int32_t* row_sums =
      elements<std::int32_t>(operands.left + call.batch * call.rows * padded);
  const std::int32_t* column_sums =
      elements<std::int32_t>(operands.right + call.batch * panels * kPanel * padded);

  ColumnTerms terms_of(std::int64_t matrix, std::int64_t first, std::int64_t count) const {
    ColumnTerms terms{};
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int32_t zero = operands.right_zero[call.right_zeros ? first + c : 0];
      terms.zeros[c] = static_cast<std::uint32_t>(zero) + unsigned_of(call.right_shift);
      terms.sums[c] = static_cast<std::uint32_t>(column_sums[matrix * panels * kPanel + first + c]);
    }
    return terms;
  }

  void store(std::int64_t matrix, std::int64_t row, std::int64_t first, std::int64_t count,
             const ColumnTerms& terms, const std::int32_t* sums) const {
    const std::uint32_t zero =
        static_cast<std::uint32_t>(operands.left_zero[call.left_zeros ? row : 0]) +
        unsigned_of(call.left_shift);
    const auto row_sum = static_cast<std::uint32_t>(row_sums[matrix * call.rows + row]);
    const std::uint32_t at_zero = unsigned_of(call.inner) * zero;
    std::int32_t* target =
        operands.target + matrix * call.target_batch + row * call.target_row + first;
    for (std::int64_t c = 0; c < count; ++c) {
      const std::uint32_t sum = static_cast<std::uint32_t>(sums[c]) - zero * terms.sums[c] +
                                terms.zeros[c] * (at_zero - row_sum);
      target[c] = static_cast<std::int32_t>(sum);
    }
  }

  /// Up to kPieceRows rows from `row` on times two panels.
  void run_piece(std::int64_t matrix, std::int64_t row, std::int64_t panel) const {
    const std::int64_t first = panel * kPanel;
    const std::int64_t count = std::min(kWidth, call.columns - first);
    const ColumnTerms terms = terms_of(matrix, first, count);
    const std::int64_t end = std::min(call.rows, row + kPieceRows);
    const std::int64_t panel_bytes = kPanel * padded;
    Block block{};
    block.left_row = padded;
    block.right = elements<std::int8_t>(operands.right) + (matrix * panels + panel) * panel_bytes;
    block.right_panel = panel + 1 < panels ? panel_bytes : 0;
    block.fours = padded / 4;
    std::int32_t sums[kBlockRows * kWidth];
    block.sums = sums;
    for (; row < end; row += kBlockRows) {
      const std::int64_t height = std::min(kBlockRows, end - row);
      block.left = elements<std::uint8_t>(operands.left) + (matrix * call.rows + row) * padded;
      multiply_rows(height, call.uses_vnni)(block);
      for (std::int64_t r = 0; r < height; ++r) {
        store(matrix, row + r, first, count, terms, sums + r * kWidth);
      }
    }
  }

  void run() const {
    const std::int64_t across = ceil_div(panels, 2);
    const std::int64_t down = ceil_div(call.rows, kPieceRows);
    const bool is_enough = call.batch * call.rows * padded * call.columns >= kParallelProducts;
    share_pieces(call.batch * down * across, threads_for(is_enough), [&](std::int64_t piece, int) {
      run_piece(piece / across / down, piece / across % down * kPieceRows, piece % across * 2);
    });
  }
};

[[gnu::always_inline]] inline void multiply_wide_row(const IntegerProduct& call,
                                                     const std::int32_t* left,
                                                     const std::int32_t* right,
                                                     std::int32_t* __restrict target) {
  std::fill_n(target, call.columns, 0);
  for (std::int64_t k = 0; k < call.inner; ++k) {
    const auto factor = static_cast<std::uint32_t>(left[k]);
    const std::int32_t* row = right + k * call.columns;
    for (std::int64_t c = 0; c < call.columns; ++c) {
      const std::uint32_t product = factor * static_cast<std::uint32_t>(row[c]);
      target[c] = static_cast<std::int32_t>(static_cast<std::uint32_t>(target[c]) + product);
    }
  }
}

using WideRow = void(const IntegerProduct&, const std::int32_t*, const std::int32_t*,
                     std::int32_t*);
void wide_row_anywhere(const IntegerProduct& call, const std::int32_t* left,
                       const std::int32_t* right, std::int32_t* target) {
  multiply_wide_row(call, left, right, target);
}
NPU_TARGET_AVX2 void wide_row_avx2(const IntegerProduct& call, const std::int32_t* left,
                                   const std::int32_t* right, std::int32_t* target) {
  multiply_wide_row(call, left, right, target);
}
NPU_TARGET_AVX512 void wide_row_avx512(const IntegerProduct& call, const std::int32_t* left,
                                       const std::int32_t* right, std::int32_t* target) {
  multiply_wide_row(call, left, right, target);
}

}  // namespace

bool cpu_has_vnni() {
  static const bool does = cpu_has(CpuFeature::kAvx512Vnni);
  return does;
}

void IntegerRows::run(const Operands& operands) const {
  const std::int64_t all_windows = windows[0] * windows[1] * windows[2];
  const std::int64_t padded = padded_inner(type, inner());
  const std::int64_t width = channels / groups;
  auto* sums = elements<std::int32_t>(operands.target + rows() * padded);
  const auto make = [&](std::int64_t row) {
    const std::int64_t window = row % all_windows;
    const std::int64_t image = row / all_windows % batch;
    const std::int64_t first = row / all_windows / batch * width;
    std::byte* target = operands.target + row * padded;
    if (type == DType::kInt32) {
      return make_wide_row(*this, elements<std::int32_t>(operands.source) + first, *operands.zero,
                           image, window, elements<std::int32_t>(target));
    }
    make_byte_row(*this, elements<std::uint8_t>(operands.source) + first,
                  static_cast<std::uint8_t>(*operands.zero), image, window,
                  elements<std::uint8_t>(target), sums[row]);
  };
  constexpr std::int64_t kRun = 64;
  share_range(rows(), kRun, threads_for(rows() * padded >= kParallelElements),
              [&](std::int64_t row, std::int64_t end) {
                for (; row < end; ++row) make(row);
              });
}

void IntegerPanels::run(const Operands& operands) const {
  const std::int64_t padded = padded_inner(type, inner);
  const std::uint8_t flip = type == DType::kUInt8 ? 128 : 0;
  auto* sums = elements<std::int32_t>(operands.target + batch * panels() * kColumns * padded);
  const auto make = [&](std::int64_t index) {
    const std::uint8_t* source =
        elements<std::uint8_t>(operands.source) + index / panels() * inner * columns;
    const std::int64_t first = index % panels() * kColumns;
    const std::int64_t count = std::min(kColumns, columns - first);
    auto* target = elements<std::uint8_t>(operands.target) + index * kColumns * padded;
    std::fill_n(target, kColumns * padded, std::uint8_t{0});
    std::int32_t totals[kColumns] = {};
    for (std::int64_t k = 0; k < inner; ++k) {
      const std::uint8_t* from = source + k * columns + first;
      std::uint8_t* to = target + k / 4 * 4 * kColumns + k % 4;
      for (std::int64_t c = 0; c < count; ++c) {
        const auto number = static_cast<std::uint8_t>(from[c] ^ flip);
        to[4 * c] = number;
        totals[c] += static_cast<std::int8_t>(number);
      }
    }
    std::copy_n(totals, kColumns, sums + index * kColumns);
  };
  share_range(batch * panels(), 1, threads_for(batch * inner * columns >= kParallelElements),
              [&](std::int64_t index, std::int64_t end) {
                for (; index < end; ++index) make(index);
              });
}

void IntegerProduct::run(const Operands& operands) const {
  if (is_byte(type)) return ProductOfBytes{*this, operands}.run();
  auto* const body = for_isa<WideRow>(isa, wide_row_anywhere, wide_row_avx2, wide_row_avx512);
  const auto* left = elements<std::int32_t>(operands.left);
  const auto* right = elements<std::int32_t>(operands.right);
  const bool is_enough = batch * rows * inner * columns >= kParallelProducts;
  share_range(batch * rows, 1, threads_for(is_enough), [&](std::int64_t index, std::int64_t end) {
    for (; index < end; ++index) {
      const std::int64_t matrix = index / rows;
      const std::int64_t row = index % rows;
      body(*this, left + index * inner, right + matrix * inner * columns,
           operands.target + matrix * target_batch + row * target_row);
    }
  });
}

namespace {

/// So few that no sum of bytes leaves 32 bits.
Count inner_of(std::int64_t inner) {
  constexpr std::int64_t kMostInner = 1 << 22;
  require(inner <= kMostInner, "'inner' is too large");
  return at_least_one(inner, "inner");
}

/// Words of four bytes of a row with its sum, or without, of int32.
Count words_of(DType type, std::int64_t inner) {
  return is_byte(type) ? Count{padded_inner(type, inner) / 4 + 1} : Count{inner};
}

}  // namespace

Footprint footprint(const IntegerRows& kernel) {
  require(is_byte(kernel.type) || kernel.type == DType::kInt32,
          "'type' is not uint8, int8 or int32");
  const Count batch = at_least_one(kernel.batch, "batch");
  const Count channels = at_least_one(kernel.channels, "channels");
  require(at_least_one(kernel.groups, "groups").value() <= kernel.channels &&
              kernel.channels % kernel.groups == 0,
          "'groups' does not divide 'channels'");
  Count source = batch * channels;
  Count rows = batch * kernel.groups;
  Count inner = kernel.channels / kernel.groups;
  for (int i = 0; i < 3; ++i) {
    source = source * at_least_one(kernel.extents[i], "extents");
    rows = rows * at_least_one(kernel.windows[i], "windows");
    inner = inner * at_least_one(kernel.taps[i], "taps");
    // Where windows lie is computed without overflow.
    static_cast<void>(Count{kernel.windows[i]} * at_least_one(kernel.stride[i], "stride") +
                      Count{kernel.taps[i]} * at_least_one(kernel.dilation[i], "dilation") +
                      Count{kernel.pad[i]});
  }
  return FootprintBuilder()
      .read(source, size_of(kernel.type))
      .read(1)
      .write(rows * words_of(kernel.type, inner_of(inner.value()).value()))
      .done();
}

Footprint footprint(const IntegerPanels& kernel) {
  require(is_byte(kernel.type), "'type' is not uint8 or int8");
  const Count batch = at_least_one(kernel.batch, "batch");
  const Count columns = at_least_one(kernel.columns, "columns");
  const Count inner = inner_of(kernel.inner);
  const Count padded = Count{kernel.panels()} * IntegerPanels::kColumns;
  return FootprintBuilder()
      .read(batch * inner * columns, 1)
      .write(batch * padded * words_of(kernel.type, kernel.inner))
      .done();
}

Footprint footprint(const IntegerProduct& kernel) {
  constexpr std::int64_t kMostShift = 256;
  const bool is_bytes = kernel.type == DType::kUInt8;
  require(is_bytes || kernel.type == DType::kInt32, "'type' is not uint8 or int32");
  require(!kernel.uses_vnni || cpu_has_vnni(), "'uses_vnni' is more than this CPU has");
  for (const std::int64_t shift : {kernel.left_shift, kernel.right_shift}) {
    require(-kMostShift <= shift && shift <= kMostShift, "a shift is too large");
  }
  const Count batch = at_least_one(kernel.batch, "batch");
  const Count rows = at_least_one(kernel.rows, "rows");
  const Count columns = at_least_one(kernel.columns, "columns");
  const Count words = words_of(kernel.type, inner_of(kernel.inner).value());
  const Count padded =
      is_bytes ? Count{ceil_div(kernel.columns, IntegerPanels::kColumns)} * IntegerPanels::kColumns
               : columns;
  static_cast<void>(rows * columns * words * batch);
  return FootprintBuilder()
      .read(batch * rows * words)
      .read(batch * padded * words)
      .read_if(is_bytes, kernel.left_zeros ? rows : Count{1})
      .read_if(is_bytes, kernel.right_zeros ? columns : Count{1})
      .write(target_span_of({kernel.batch, kernel.rows, kernel.columns},
                            {kernel.target_batch, kernel.target_row, 1}))
      .done();
}

}  // namespace npu::onednn
