// SPDX-License-Identifier: Apache-2.0
// Kernels for what oneDNN has no primitive for, or only a slow one: strided copies, broadcasts
// beyond its patterns, uneven pooling windows, gathers. All compute in float32 (sums in float64),
// store to nearest even, and share their outermost loop among OpenMP threads once there is enough
// work to pay for it. Everything is memory-bound, so one straightforward loop each is enough; no
// blocking for caches but in transposing copies.
#include "kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace npu::onednn {

namespace {

// Below this many elements the start of a parallel region costs more than it saves.
constexpr std::int64_t kParallelElements = 16384;

struct BFloat16 {
  std::uint16_t bits;
};

inline float load(float value) { return value; }
inline float load(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

inline std::uint16_t rounded_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  return static_cast<std::uint16_t>((is_nan ? bits | 0x00400000U : rounded) >> 16);
}
inline void store(float& target, float value) { target = value; }
inline void store(BFloat16& target, float value) { target.bits = rounded_bits(value); }

template <typename T>
const T* elements(const std::byte* data) {
  return static_cast<const T*>(static_cast<const void*>(data));
}
template <typename T>
T* elements(std::byte* data) {
  return static_cast<T*>(static_cast<void*>(data));
}

std::int64_t product(const std::vector<std::int64_t>& values) {
  std::int64_t result = 1;
  for (const std::int64_t value : values) result *= value;
  return result;
}

/// Drops extents of 1, orders dimensions by the first stride list (largest first) and joins
/// neighbours that every list visits in one run. At least one dimension is left.
void simplify_space(std::vector<std::int64_t>& extents,
                    const std::vector<std::vector<std::int64_t>*>& lists) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] != 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return (*lists[0])[a] > (*lists[0])[b]; });
  std::vector<std::int64_t> new_extents;
  std::vector<std::vector<std::int64_t>> new_lists(lists.size());
  for (const std::size_t i : order) {
    bool joins = !new_extents.empty();
    for (std::size_t k = 0; joins && k < lists.size(); ++k) {
      joins = new_lists[k].back() == (*lists[k])[i] * extents[i];
    }
    if (joins) {
      new_extents.back() *= extents[i];
      for (std::size_t k = 0; k < lists.size(); ++k) new_lists[k].back() = (*lists[k])[i];
    } else {
      new_extents.push_back(extents[i]);
      for (std::size_t k = 0; k < lists.size(); ++k) new_lists[k].push_back((*lists[k])[i]);
    }
  }
  if (new_extents.empty()) {
    new_extents.push_back(1);
    for (auto& list : new_lists) list.push_back(1);
  }
  extents = std::move(new_extents);
  for (std::size_t k = 0; k < lists.size(); ++k) *lists[k] = std::move(new_lists[k]);
}

/// Offsets of one row of an iteration space, given the row's number: every dimension but the last
/// `inner` ones counts rows.
template <std::size_t kLists>
void row_offsets(std::int64_t row, const std::vector<std::int64_t>& extents, std::size_t inner,
                 const std::vector<std::int64_t>* const (&lists)[kLists],
                 std::int64_t (&offsets)[kLists]) {
  for (auto& offset : offsets) offset = 0;
  for (std::size_t i = extents.size() - inner; i > 0; --i) {
    const std::int64_t index = row % extents[i - 1];
    row /= extents[i - 1];
    for (std::size_t k = 0; k < kLists; ++k) offsets[k] += index * (*lists[k])[i - 1];
  }
}

template <typename T>
void copy_elements(const StridedCopy& copy, const std::byte* source_bytes,
                   std::byte* target_bytes) {
  const T* source = elements<T>(source_bytes);
  T* target = elements<T>(target_bytes);
  const std::size_t rank = copy.extents.size();
  const bool transposes = rank >= 2 && copy.source_strides[rank - 1] != 1;
  const std::size_t inner = transposes ? 2 : 1;
  const std::int64_t columns = copy.extents[rank - 1];
  const std::int64_t lines = transposes ? copy.extents[rank - 2] : 1;
  const std::int64_t total = product(copy.extents);
  const std::int64_t planes = total / (columns * lines);
  const std::int64_t source_column = copy.source_strides[rank - 1];
  const std::int64_t target_column = copy.target_strides[rank - 1];
  const std::int64_t source_line = transposes ? copy.source_strides[rank - 2] : 0;
  const std::int64_t target_line = transposes ? copy.target_strides[rank - 2] : 0;
  // A transposing copy walks square tiles so that the lines of both sides stay in the cache.
  constexpr std::int64_t kTile = 32;
  const std::int64_t bands = (lines + kTile - 1) / kTile;
#pragma omp parallel for collapse(2) if (total >= kParallelElements)
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t band = 0; band < bands; ++band) {
      std::int64_t offsets[2];
      row_offsets(plane, copy.extents, inner, {&copy.source_strides, &copy.target_strides},
                  offsets);
      const T* from = source + offsets[0];
      T* to = target + offsets[1];
      if (!transposes && source_column == 1 && target_column == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(columns) * sizeof(T));
        continue;
      }
      const std::int64_t last_line = std::min(lines, (band + 1) * kTile);
      for (std::int64_t begin = 0; begin < columns; begin += transposes ? kTile : columns) {
        const std::int64_t end = transposes ? std::min(columns, begin + kTile) : columns;
        for (std::int64_t line = band * kTile; line < last_line; ++line) {
          const T* from_line = from + line * source_line;
          T* to_line = to + line * target_line;
          for (std::int64_t i = begin; i < end; ++i) {
            to_line[i * target_column] = from_line[i * source_column];
          }
        }
      }
    }
  }
}

template <BinaryOp kOp>
inline float apply(float a, float b, float alpha) {
  if constexpr (kOp == BinaryOp::kAdd) return a + alpha * b;
  if constexpr (kOp == BinaryOp::kSubtract) return a - alpha * b;
  if constexpr (kOp == BinaryOp::kMultiply) return a * b;
  if constexpr (kOp == BinaryOp::kDivide) return a / b;
  // A comparison with NaN is false: return it whichever side it is on.
  if constexpr (kOp == BinaryOp::kMaximum) return a > b || a != a ? a : b;
  if constexpr (kOp == BinaryOp::kPower) return std::pow(a, b);
  return a < b || a != a ? a : b;
}

template <BinaryOp kOp, typename A, typename B>
void binary_row(std::int64_t count, const A* a, std::int64_t a_stride, const B* b,
                std::int64_t b_stride, A* target, std::int64_t target_stride, float alpha) {
  if (target_stride == 1 && a_stride == 1 && b_stride == 1) {
    for (std::int64_t i = 0; i < count; ++i)
      store(target[i], apply<kOp>(load(a[i]), load(b[i]), alpha));
  } else if (target_stride == 1 && a_stride == 1 && b_stride == 0) {
    const float right = load(b[0]);
    for (std::int64_t i = 0; i < count; ++i) store(target[i], apply<kOp>(load(a[i]), right, alpha));
  } else if (target_stride == 1 && a_stride == 0 && b_stride == 1) {
    const float left = load(a[0]);
    for (std::int64_t i = 0; i < count; ++i) store(target[i], apply<kOp>(left, load(b[i]), alpha));
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      store(target[i * target_stride],
            apply<kOp>(load(a[i * a_stride]), load(b[i * b_stride]), alpha));
    }
  }
}

template <BinaryOp kOp, typename A, typename B>
void binary_all(const BroadcastBinary& call, const A* a, const B* b, A* target) {
  const std::size_t last = call.extents.size() - 1;
  const std::int64_t count = call.extents[last];
  const std::int64_t total = product(call.extents);
  const std::int64_t rows = total / count;
  if (rows == 1) {  // one long row: cut it so that threads share it
    constexpr std::int64_t kPiece = 8192;
    const std::int64_t pieces = (count + kPiece - 1) / kPiece;
#pragma omp parallel for if (total >= kParallelElements)
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t begin = piece * kPiece;
      binary_row<kOp>(std::min(kPiece, count - begin), a + begin * call.a_strides[last],
                      call.a_strides[last], b + begin * call.b_strides[last], call.b_strides[last],
                      target + begin * call.target_strides[last], call.target_strides[last],
                      call.alpha);
    }
    return;
  }
#pragma omp parallel for if (total >= kParallelElements)
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t offsets[3];
    row_offsets(row, call.extents, 1, {&call.a_strides, &call.b_strides, &call.target_strides},
                offsets);
    binary_row<kOp>(count, a + offsets[0], call.a_strides[last], b + offsets[1],
                    call.b_strides[last], target + offsets[2], call.target_strides[last],
                    call.alpha);
  }
}

template <typename A, typename B>
void binary_typed(const BroadcastBinary& call, const std::byte* a, const std::byte* b,
                  std::byte* target) {
  const A* left = elements<A>(a);
  const B* right = elements<B>(b);
  A* to = elements<A>(target);
  switch (call.op) {
    case BinaryOp::kAdd:
      return binary_all<BinaryOp::kAdd>(call, left, right, to);
    case BinaryOp::kSubtract:
      return binary_all<BinaryOp::kSubtract>(call, left, right, to);
    case BinaryOp::kMultiply:
      return binary_all<BinaryOp::kMultiply>(call, left, right, to);
    case BinaryOp::kDivide:
      return binary_all<BinaryOp::kDivide>(call, left, right, to);
    case BinaryOp::kMaximum:
      return binary_all<BinaryOp::kMaximum>(call, left, right, to);
    case BinaryOp::kMinimum:
      return binary_all<BinaryOp::kMinimum>(call, left, right, to);
    case BinaryOp::kPower:
      return binary_all<BinaryOp::kPower>(call, left, right, to);
  }
}

template <typename T>
void average_windows(const WindowAverage& call, const T* source, T* target) {
  const auto& [slices, rows, columns] = call.windows;
  const std::int64_t height = call.extents[1];
  const std::int64_t width = call.extents[2];
  const std::int64_t plane_elements = call.extents[0] * height * width;
  const auto outputs = static_cast<std::int64_t>(slices.size() * rows.size() * columns.size());
#pragma omp parallel for if (call.planes * plane_elements >= kParallelElements)
  for (std::int64_t plane = 0; plane < call.planes; ++plane) {
    const T* from = source + plane * plane_elements;
    T* to = target + plane * outputs;
    for (const Window& slice : slices) {
      for (const Window& row : rows) {
        for (const Window& column : columns) {
          double sum = 0.0;
          for (std::int64_t z = slice.begin; z < slice.end; ++z) {
            for (std::int64_t y = row.begin; y < row.end; ++y) {
              for (std::int64_t x = column.begin; x < column.end; ++x) {
                sum += static_cast<double>(load(from[(z * height + y) * width + x]));
              }
            }
          }
          const std::int64_t divisor = call.divisor_override != 0
                                           ? call.divisor_override
                                           : slice.divisor * row.divisor * column.divisor;
          store(*to++, static_cast<float>(sum / static_cast<double>(divisor)));
        }
      }
    }
  }
}

template <ReductionOp kOp>
inline double reduce(double sum, double value) {
  if constexpr (kOp == ReductionOp::kMaximum) return value > sum || value != value ? value : sum;
  if constexpr (kOp == ReductionOp::kMinimum) return value < sum || value != value ? value : sum;
  return sum + value;
}

template <ReductionOp kOp, typename T>
void reduce_middle(const MiddleReduction& call, const T* source, T* target) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kStart = kOp == ReductionOp::kMaximum   ? -kInfinity
                            : kOp == ReductionOp::kMinimum ? kInfinity
                                                           : 0.0;
  // Columns in groups, so that sums of one group stay in registers or the first cache.
  constexpr std::int64_t kGroup = 64;
  const std::int64_t groups = (call.inner + kGroup - 1) / kGroup;
#pragma omp parallel for collapse(2) if (call.outer * call.count * call.inner >= kParallelElements)
  for (std::int64_t outer = 0; outer < call.outer; ++outer) {
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t begin = group * kGroup;
      const std::int64_t width = std::min(kGroup, call.inner - begin);
      double sums[kGroup];
      std::fill_n(sums, kGroup, kStart);
      for (std::int64_t i = 0; i < call.count; ++i) {
        const T* row = source + (outer * call.count + i) * call.inner + begin;
        for (std::int64_t j = 0; j < width; ++j) {
          const auto value = static_cast<double>(load(row[j]));
          // A NaN stays: every comparison with it is false.
          if (kOp == ReductionOp::kMean || kOp == ReductionOp::kSum || sums[j] == sums[j]) {
            sums[j] = reduce<kOp>(sums[j], value);
          }
        }
      }
      T* to = target + outer * call.inner + begin;
      for (std::int64_t j = 0; j < width; ++j) {
        const double divisor = kOp == ReductionOp::kMean ? static_cast<double>(call.count) : 1.0;
        store(to[j], static_cast<float>(sums[j] / divisor));
      }
    }
  }
}

template <typename T>
void reduce_typed(const MiddleReduction& call, const T* source, T* target) {
  switch (call.op) {
    case ReductionOp::kMean:
      return reduce_middle<ReductionOp::kMean>(call, source, target);
    case ReductionOp::kSum:
      return reduce_middle<ReductionOp::kSum>(call, source, target);
    case ReductionOp::kMaximum:
      return reduce_middle<ReductionOp::kMaximum>(call, source, target);
    case ReductionOp::kMinimum:
      return reduce_middle<ReductionOp::kMinimum>(call, source, target);
  }
}

template <typename T>
void norm_rows(const RowNorm& call, const T* source, const float* weight, const float* bias,
               T* target) {
  const std::int64_t count = call.rows * call.inner;
  const std::int64_t pieces = call.outer * call.groups;
#pragma omp parallel for if (pieces * count >= kParallelElements)
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const T* from = source + piece * count;
    T* to = target + piece * count;
    double sum = 0.0;
    double squares = 0.0;
    if (!call.is_rms) {
      for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(load(from[i]));
    }
    const double mean = sum / static_cast<double>(count);
    for (std::int64_t i = 0; i < count; ++i) {
      const double difference = static_cast<double>(load(from[i])) - mean;
      squares += difference * difference;
    }
    const auto factor = static_cast<float>(
        1.0 / std::sqrt(squares / static_cast<double>(count) + static_cast<double>(call.epsilon)));
    const auto center = static_cast<float>(mean);
    for (std::int64_t row = 0; row < call.rows; ++row) {
      const std::int64_t channel = piece % call.groups * call.rows + row;
      for (std::int64_t i = 0; i < call.inner; ++i) {
        const std::int64_t at = call.per_column ? i : channel;
        float value = (load(from[row * call.inner + i]) - center) * factor;
        if (weight != nullptr) value *= weight[at];
        if (bias != nullptr) value += bias[at];
        store(to[row * call.inner + i], value);
      }
    }
  }
}

template <typename From, typename To>
inline To cast_value(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    if constexpr (std::is_same_v<From, BFloat16>)
      return load(value) != 0.0F;
    else
      return value != From{};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    BFloat16 result;
    if constexpr (std::is_same_v<From, BFloat16>)
      result = value;
    else
      store(result, static_cast<float>(value));
    return result;
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    return cast_value<float, To>(load(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Outside int64 the result means nothing, but must not be undefined.
    constexpr auto kLimit = static_cast<From>(9.2233720368547758e18);
    if (!(value > -kLimit && value < kLimit)) return static_cast<To>(INT64_MIN);
    return static_cast<To>(static_cast<std::int64_t>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
void cast_all(const From* source, To* target, std::int64_t count) {
#pragma omp parallel for if (count >= kParallelElements)
  for (std::int64_t i = 0; i < count; ++i) target[i] = cast_value<From, To>(source[i]);
}

template <typename Body>
void with_type(DType type, Body&& body) {
  switch (type) {
    case DType::kFloat32:
      return body(float{});
    case DType::kFloat64:
      return body(double{});
    case DType::kBFloat16:
      return body(BFloat16{});
    case DType::kInt8:
      return body(std::int8_t{});
    case DType::kUInt8:
      return body(std::uint8_t{});
    case DType::kInt16:
      return body(std::int16_t{});
    case DType::kInt32:
      return body(std::int32_t{});
    case DType::kInt64:
      return body(std::int64_t{});
    case DType::kBool:
      return body(bool{});
    default:
      return;
  }
}

}  // namespace

void convert(DType from, const void* source, DType to, void* target, std::int64_t count) {
  if (from == DType::kFloat32 && to == DType::kBFloat16) {
    const auto* values = static_cast<const float*>(source);
    auto* results = static_cast<std::uint16_t*>(target);
#pragma omp parallel for simd if (count >= kParallelElements)
    for (std::int64_t i = 0; i < count; ++i) results[i] = rounded_bits(values[i]);
  } else {
    const auto* values = static_cast<const BFloat16*>(source);
    auto* results = static_cast<float*>(target);
#pragma omp parallel for simd if (count >= kParallelElements)
    for (std::int64_t i = 0; i < count; ++i) results[i] = load(values[i]);
  }
}

void round_to_bfloat16(float* values, std::int64_t count) {
#pragma omp parallel for simd if (count >= kParallelElements)
  for (std::int64_t i = 0; i < count; ++i) values[i] = load(BFloat16{rounded_bits(values[i])});
}

void fill(DType type, float number, std::byte* target, std::int64_t count) {
  if (type == DType::kFloat32) {
    std::fill_n(elements<float>(target), count, number);
  } else {
    std::fill_n(elements<std::uint16_t>(target), count, rounded_bits(number));
  }
}

void StridedCopy::simplify() { simplify_space(extents, {&target_strides, &source_strides}); }

void StridedCopy::run(const std::byte* source, std::byte* target) const {
  struct Sixteen {
    std::uint64_t parts[2];
  };
  switch (element_size) {
    case 1:
      return copy_elements<std::uint8_t>(*this, source, target);
    case 2:
      return copy_elements<std::uint16_t>(*this, source, target);
    case 4:
      return copy_elements<std::uint32_t>(*this, source, target);
    case 8:
      return copy_elements<std::uint64_t>(*this, source, target);
    default:
      return copy_elements<Sixteen>(*this, source, target);
  }
}

void BroadcastBinary::simplify() {
  simplify_space(extents, {&target_strides, &a_strides, &b_strides});
}

void BroadcastBinary::run(const std::byte* a, const std::byte* b, std::byte* target) const {
  if (type == DType::kFloat32) {
    binary_typed<float, float>(*this, a, b, target);
  } else if (b_type == DType::kBFloat16) {
    binary_typed<BFloat16, BFloat16>(*this, a, b, target);
  } else {
    binary_typed<BFloat16, float>(*this, a, b, target);
  }
}

void PlainConcat::run(const std::byte* const* sources, std::byte* target) const {
  const auto count = static_cast<std::int64_t>(run_bytes.size());
  std::int64_t row_bytes = 0;
  for (const std::int64_t bytes : run_bytes) row_bytes += bytes;
#pragma omp parallel for if (outer * row_bytes >= 4 * kParallelElements)
  for (std::int64_t row = 0; row < outer; ++row) {
    std::byte* to = target + row * row_bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t bytes = run_bytes[static_cast<std::size_t>(i)];
      std::memcpy(to, sources[i] + row * bytes, static_cast<std::size_t>(bytes));
      to += bytes;
    }
  }
}

void NormFold::run_weights(std::span<std::byte* const> operands) const {
  const float* weights = elements<float>(operands[0]);
  const float* variance = elements<float>(operands[1]);
  const float* scale = has_scale ? elements<float>(operands[2]) : nullptr;
  float* target = elements<float>(operands.back());
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        const std::int64_t at = group * channels + channel;
        const double factor =
            (scale == nullptr ? 1.0 : static_cast<double>(scale[at])) /
            std::sqrt(static_cast<double>(variance[at]) + static_cast<double>(epsilon));
        const std::int64_t begin = ((group * rows + row) * channels + channel) * inner;
        for (std::int64_t i = begin; i < begin + inner; ++i) {
          target[i] = static_cast<float>(static_cast<double>(weights[i]) * factor);
        }
      }
    }
  }
}

void NormFold::run_bias(std::span<std::byte* const> operands) const {
  std::size_t next = 0;
  const float* variance = elements<float>(operands[next++]);
  const float* mean = elements<float>(operands[next++]);
  const float* scale = has_scale ? elements<float>(operands[next++]) : nullptr;
  const float* shift = has_shift ? elements<float>(operands[next++]) : nullptr;
  const float* bias = has_bias ? elements<float>(operands[next++]) : nullptr;
  float* target = elements<float>(operands[next]);
  const auto number = [](const float* values, std::int64_t i, double otherwise) {
    return values == nullptr ? otherwise : static_cast<double>(values[i]);
  };
  for (std::int64_t i = 0; i < groups * channels; ++i) {
    const double factor = number(scale, i, 1.0) / std::sqrt(static_cast<double>(variance[i]) +
                                                            static_cast<double>(epsilon));
    target[i] = static_cast<float>((number(bias, i, 0.0) - static_cast<double>(mean[i])) * factor +
                                   number(shift, i, 0.0));
  }
}

void NormVectors::run(std::span<std::byte* const> operands) const {
  const float* variance = elements<float>(operands[0]);
  const float* mean = elements<float>(operands[1]);
  const float* scale = has_scale ? elements<float>(operands[2]) : nullptr;
  const float* shift = has_shift ? elements<float>(operands[has_scale ? 3 : 2]) : nullptr;
  float* factors = elements<float>(operands.back());
  float* terms = factors + padded_channels;
  std::fill_n(factors, 2 * padded_channels, 0.0F);
  for (std::int64_t i = 0; i < channels; ++i) {
    const double factor =
        (scale == nullptr ? 1.0 : static_cast<double>(scale[i])) /
        std::sqrt(static_cast<double>(variance[i]) + static_cast<double>(epsilon));
    factors[i] = static_cast<float>(factor);
    terms[i] = static_cast<float>((shift == nullptr ? 0.0 : static_cast<double>(shift[i])) -
                                  static_cast<double>(mean[i]) * factor);
  }
}

bool GatherRows::run(const std::byte* table, const std::byte* indices, std::byte* target) const {
  const auto index_at = [&](std::int64_t i) -> std::int64_t {
    return wide_indices ? elements<std::int64_t>(indices)[i] : elements<std::int32_t>(indices)[i];
  };
  for (std::int64_t i = 0; i < count; ++i) {
    if (index_at(i) < 0 || index_at(i) >= rows) return false;
  }
#pragma omp parallel for if (count * row_bytes >= 4 * kParallelElements)
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(target + i * row_bytes, table + index_at(i) * row_bytes,
                static_cast<std::size_t>(row_bytes));
  }
  return true;
}

void WindowAverage::run(const std::byte* source, std::byte* target) const {
  if (type == DType::kFloat32) {
    average_windows(*this, elements<float>(source), elements<float>(target));
  } else {
    average_windows(*this, elements<BFloat16>(source), elements<BFloat16>(target));
  }
}

void MiddleReduction::run(const std::byte* source, std::byte* target) const {
  if (type == DType::kFloat32) {
    reduce_typed(*this, elements<float>(source), elements<float>(target));
  } else {
    reduce_typed(*this, elements<BFloat16>(source), elements<BFloat16>(target));
  }
}

void RowNorm::run(std::span<std::byte* const> operands) const {
  const float* weight = has_weight ? elements<float>(operands[1]) : nullptr;
  const float* bias = has_bias ? elements<float>(operands[has_weight ? 2 : 1]) : nullptr;
  if (type == DType::kFloat32) {
    norm_rows(*this, elements<float>(operands[0]), weight, bias, elements<float>(operands.back()));
  } else {
    norm_rows(*this, elements<BFloat16>(operands[0]), weight, bias,
              elements<BFloat16>(operands.back()));
  }
}

bool Cast::supports(DType type) noexcept {
  bool known = false;
  with_type(type, [&](auto) { known = true; });
  return known;
}

void Cast::run(const std::byte* source, std::byte* target) const {
  with_type(from, [&](auto from_value) {
    with_type(to, [&](auto to_value) {
      cast_all(elements<decltype(from_value)>(source), elements<decltype(to_value)>(target), count);
    });
  });
}

}  // namespace npu::onednn
