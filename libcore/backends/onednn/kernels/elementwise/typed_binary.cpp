// SPDX-License-Identifier: Apache-2.0
// Arithmetic on integers, and on floats what rounds to integers; comparisons, logic and selection
// on any type, with broadcasting. Rows of the iteration space are shared among threads; the
// innermost loops are compiled once for each instruction set; those for rests of floats take
// vectors where quotients are small. O(elements).
#include "kernels/elementwise/typed_binary.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/iteration_space.hpp"
#include "kernels/elementwise/vector_parts.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

namespace {

using Op = TypedBinary::Op;

template <typename T>
[[gnu::always_inline]] inline T wrapped(std::make_unsigned_t<T> value) {
  return static_cast<T>(value);
}

/// From the quotient towards zero and its rest, the result.
template <Op kOp, typename T>
[[gnu::always_inline]] inline T rounded_quotient(T quotient, T rest, T b) {
  if constexpr (kOp == Op::kFmod) return rest;
  if constexpr (kOp == Op::kTruncateDivide) return quotient;
  const T rounds = static_cast<T>(rest != 0) & static_cast<T>((rest ^ b) < 0);
  if constexpr (kOp == Op::kRemainder) return rest + (rounds != 0 ? b : 0);
  return quotient - rounds;
}

/// b is not 0.
template <Op kOp, typename T>
[[gnu::always_inline]] inline T divide(T a, T b) {
  if (b == -1) {  // the smallest number has no opposite
    if constexpr (kOp == Op::kRemainder || kOp == Op::kFmod) return 0;
    return wrapped<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  }
  return rounded_quotient<kOp, T>(a / b, a % b, b);
}

/// The same for magnitudes below 2^51, by a division in float64, which takes a third of the time:
/// its rounding passes no whole number, from which such a quotient is further away.
template <Op kOp>
[[gnu::always_inline]] inline std::int64_t divide_small(std::int64_t a, std::int64_t b) {
  const auto quotient = static_cast<std::int64_t>(static_cast<double>(a) / static_cast<double>(b));
  return rounded_quotient<kOp, std::int64_t>(quotient, a - quotient * b, b);
}

/// Bits above the lowest 51 of a magnitude.
[[gnu::always_inline]] inline std::uint64_t high_bits(std::int64_t value) {
  return static_cast<std::uint64_t>(value ^ (value >> 63)) >> 51;
}

/// From the rest of a division, as std::fmod has it.
template <Op kOp>
[[gnu::always_inline]] inline float quotient_of(float a, float b, float rest) {
  if constexpr (kOp == Op::kFmod) return rest;
  const bool rounds = rest != 0.0F && (rest < 0.0F) != (b < 0.0F);
  if constexpr (kOp == Op::kRemainder) return rounds ? rest + b : rest;
  const float quotient = (a - rest) / b - (rounds ? 1.0F : 0.0F);
  const float below = std::floor(quotient);
  const float whole = quotient - below > 0.5F ? below + 1.0F : below;
  const float result = quotient == 0.0F ? std::copysign(0.0F, a / b) : whole;
  return b == 0.0F ? a / b : result;
}

template <Op kOp>
inline float divide_floats(float a, float b) {
  if constexpr (kOp == Op::kTruncateDivide) return std::trunc(a / b);
  return quotient_of<kOp>(a, b, std::fmod(a, b));
}

/// As many numbers as a vector of floats has.
template <typename V>
struct DoublesOf;
template <>
struct DoublesOf<Float16> {
  using Type = double __attribute__((vector_size(128)));
};
template <>
struct DoublesOf<Float8> {
  using Type = double __attribute__((vector_size(64)));
};
template <>
struct DoublesOf<Float4> {
  using Type = double __attribute__((vector_size(32)));
};

/// Rests of a vector of divisions, those of std::fmod bit for bit: the whole part of a rounded
/// quotient below 2^22 is that of the quotient or one more, since rounding passes no whole number;
/// its product with b, and what that leaves of a, are exact in float64. False if a lane's quotient
/// is larger, or no number; or if b is infinite.
template <typename V>
[[gnu::always_inline]] inline bool rests_of(V a, V b, V& rests) {
  using Int = typename IntegersOf<V>::Type;
  using Doubles = typename DoublesOf<V>::Type;
  constexpr float kMostWhole = 4194304.0F;
  constexpr float kMostFinite = std::numeric_limits<float>::max();
  const V divisor = b < 0.0F ? -b : b;
  const V quotient = divisor <= kMostFinite ? a / b : V{} + kMostWhole;
  const V size = quotient < 0.0F ? -quotient : quotient;
  const V plain = size < kMostWhole ? quotient : V{} + kMostWhole;
  const V whole = __builtin_convertvector(__builtin_convertvector(plain, Int), V);
  const Doubles left =
      __builtin_convertvector(a, Doubles) -
      __builtin_convertvector(whole, Doubles) * __builtin_convertvector(b, Doubles);
  V rest = __builtin_convertvector(left, V);
  rest = times_sign_of(rest, a) < 0.0F ? rest + with_sign_of(divisor, a) : rest;
  rests = with_sign_of(rest, a);
  const Int is_large = plain == kMostWhole;
  std::uint64_t lanes[sizeof is_large / sizeof(std::uint64_t)];
  std::memcpy(lanes, &is_large, sizeof is_large);
  std::uint64_t large = 0;
  for (const std::uint64_t each : lanes) large |= each;
  return large == 0;
}

/// From these, the results: as quotient_of.
template <Op kOp, typename V>
[[gnu::always_inline]] inline V quotients_of(V a, V b, V rest) {
  if constexpr (kOp == Op::kFmod) return rest;
  const V agreement = times_sign_of(rest, b);  // negative: one less
  if constexpr (kOp == Op::kRemainder) return agreement < 0.0F ? rest + b : rest;
  const V quotient = (a - rest) / b - (agreement < 0.0F ? V{} + 1.0F : V{});
  const V below = floor_vector(quotient);
  const V whole = quotient - below > 0.5F ? below + 1.0F : below;
  return quotient == 0.0F ? with_sign_of(V{}, a / b) : whole;
}

/// Elements that follow each other; those whose rests take more than one step, one by one.
template <Op kOp, typename V>
[[gnu::always_inline]] inline void divide_block(const float* a, const float* b, float* target,
                                                std::int64_t count) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    V x;
    V y;
    V rest;
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y, b + i, sizeof y);
    if constexpr (kOp == Op::kTruncateDivide) {
      const V result = truncate_vector(x / y);
      std::memcpy(target + i, &result, sizeof result);
    } else if (rests_of(x, y, rest)) {
      const V result = quotients_of<kOp>(x, y, rest);
      std::memcpy(target + i, &result, sizeof result);
    } else {
      for (std::int64_t j = i; j < i + kLanes; ++j) target[j] = divide_floats<kOp>(a[j], b[j]);
    }
  }
  for (; i < count; ++i) target[i] = divide_floats<kOp>(a[i], b[i]);
}

template <Op kOp, typename T>
[[gnu::always_inline]] inline T integer_result(T a, T b, std::int64_t alpha) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto x = static_cast<Unsigned>(a);
  const auto y = static_cast<Unsigned>(b);
  if constexpr (kOp == Op::kAdd) return wrapped<T>(x + static_cast<Unsigned>(alpha) * y);
  if constexpr (kOp == Op::kMultiply) return wrapped<T>(x * y);
  if constexpr (kOp == Op::kMinimum) return a < b ? a : b;
  if constexpr (kOp == Op::kMaximum) return a > b ? a : b;
  if constexpr (kOp == Op::kAbsoluteDifference) return wrapped<T>(a < b ? y - x : x - y);
  if constexpr (kOp == Op::kBitAnd) return a & b;
  if constexpr (kOp == Op::kBitOr) return a | b;
  if constexpr (kOp == Op::kBitXor) return a ^ b;
}

template <Op kOp, typename T>
[[gnu::always_inline]] inline bool truth(T a, T b) {
  if constexpr (kOp == Op::kEqual) return a == b;
  if constexpr (kOp == Op::kNotEqual) return a != b;
  if constexpr (kOp == Op::kLess) return a < b;
  if constexpr (kOp == Op::kLessEqual) return a <= b;
  if constexpr (kOp == Op::kGreater) return a > b;
  if constexpr (kOp == Op::kGreaterEqual) return a >= b;
  if constexpr (kOp == Op::kLogicalAnd)
    return (static_cast<int>(a != T{}) & static_cast<int>(b != T{})) != 0;
  if constexpr (kOp == Op::kLogicalOr)
    return (static_cast<int>(a != T{}) | static_cast<int>(b != T{})) != 0;
  return (a != T{}) != (b != T{});
}

template <typename T>
[[gnu::always_inline]] inline auto value_of(T element) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return load(element);
  } else {
    return element;
  }
}

/// What an element of the target is: bool where the op gives truth.
template <Op kOp, typename T>
using ResultOf = std::conditional_t<TypedBinary::gives_bool(kOp), std::uint8_t, T>;

template <Op kOp, typename T>
[[gnu::always_inline]] inline void put(ResultOf<kOp, T>& target, T a, T b, std::int64_t alpha) {
  if constexpr (TypedBinary::gives_bool(kOp)) {
    target = truth<kOp>(value_of(a), value_of(b)) ? 1 : 0;
  } else if constexpr (std::is_integral_v<T>) {
    target = integer_result<kOp>(a, b, alpha);
  } else {
    store(target, divide_floats<kOp>(load(a), load(b)));
  }
}

/// One row of an iteration space.
struct Row {
  const TypedBinary* call;
  const std::byte* a;
  const std::byte* b;
  std::byte* target;
  std::int64_t count;
};

/// A row's operands of one type.
template <typename T, typename To = T>
struct TypedRow {
  const T* a;
  const T* b;
  To* target;
  std::int64_t a_stride;
  std::int64_t b_stride;
  std::int64_t target_stride;
  std::int64_t count;  ///< a copy: a store of bytes might change what a row points to

  explicit TypedRow(const Row& row)
      : a(elements<T>(row.a)),
        b(elements<T>(row.b)),
        target(elements<To>(row.target)),
        a_stride(row.call->a_strides.back()),
        b_stride(row.call->b_strides.back()),
        target_stride(row.call->target_strides.back()),
        count(row.count) {}
};

/// A row of integers by blocks: in float64 where all of a block are small.
template <Op kOp, typename T>
[[gnu::always_inline]] inline void divide_integers(const Row& row) {
  constexpr std::int64_t kElements = 64;
  const auto [a, b, target, a_stride, b_stride, target_stride, count] = TypedRow<T>(row);
  std::int64_t x[kElements];
  std::int64_t y[kElements];
  for (std::int64_t first = 0; first < count; first += kElements) {
    const std::int64_t width = std::min(kElements, count - first);
    std::uint64_t high = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      x[i] = a[(first + i) * a_stride];
      y[i] = b[(first + i) * b_stride];
      high |= high_bits(x[i]) | high_bits(y[i]);
    }
    T* to = target + first * target_stride;
    if (high == 0) {
      for (std::int64_t i = 0; i < width; ++i) {
        to[i * target_stride] = static_cast<T>(divide_small<kOp>(x[i], y[i]));
      }
    } else {
      for (std::int64_t i = 0; i < width; ++i) {
        to[i * target_stride] = divide<kOp>(static_cast<T>(x[i]), static_cast<T>(y[i]));
      }
    }
  }
}

/// Rows of floats by blocks, gathered where they have another type or another stride.
template <Op kOp, typename V, typename T>
[[gnu::always_inline]] inline void divide_row(const Row& row) {
  constexpr std::int64_t kElements = 256;
  const auto [a, b, target, a_stride, b_stride, target_stride, count] = TypedRow<T>(row);
  if constexpr (std::is_same_v<T, float>) {
    if (a_stride == 1 && b_stride == 1 && target_stride == 1) {
      return divide_block<kOp, V>(a, b, target, count);
    }
  }
  float x[kElements];
  float y[kElements];
  float results[kElements];
  for (std::int64_t first = 0; first < count; first += kElements) {
    const std::int64_t width = std::min(kElements, count - first);
    for (std::int64_t i = 0; i < width; ++i) x[i] = load(a[(first + i) * a_stride]);
    for (std::int64_t i = 0; i < width; ++i) y[i] = load(b[(first + i) * b_stride]);
    divide_block<kOp, V>(x, y, results, width);
    for (std::int64_t i = 0; i < width; ++i) {
      store(target[(first + i) * target_stride], results[i]);
    }
  }
}

/// Elements that lie a stride apart, side by side, and back. Not compiled for each operation.
template <typename T>
[[gnu::noinline]] void gather(const T* from, std::int64_t stride, std::int64_t count, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
}
template <typename T>
[[gnu::noinline]] void scatter(const T* from, std::int64_t count, T* to, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i) to[i * stride] = from[i];
}

/// By blocks whose elements lie side by side, so that each operation has one loop.
template <Op kOp, typename T>
[[gnu::always_inline]] inline void run_row(const Row& row) {
  constexpr std::int64_t kElements = 256;
  using To = ResultOf<kOp, T>;
  const std::int64_t alpha = row.call->alpha;
  const auto [a, b, target, a_stride, b_stride, target_stride, count] = TypedRow<T, To>(row);
  T x[kElements];
  T y[kElements];
  To results[kElements];
  if (b_stride == 0) gather(b, 0, std::min(kElements, count), y);
  for (std::int64_t first = 0; first < count; first += kElements) {
    const std::int64_t width = std::min(kElements, count - first);
    const T* left = a + first;
    const T* right = b + first;
    if (a_stride != 1) {
      gather(a + first * a_stride, a_stride, width, x);
      left = x;
    }
    if (b_stride != 1) {
      if (b_stride != 0) gather(b + first * b_stride, b_stride, width, y);
      right = y;
    }
    To* to = target_stride == 1 ? target + first : results;
    for (std::int64_t i = 0; i < width; ++i) put<kOp, T>(to[i], left[i], right[i], alpha);
    if (target_stride != 1) scatter(results, width, target + first * target_stride, target_stride);
  }
}

template <Op kOp, typename V>
[[gnu::always_inline]] inline void run_typed(const Row& row) {
  constexpr bool kBits = kOp >= Op::kBitAnd && kOp <= Op::kBitXor;
  constexpr bool kFloats = kOp >= Op::kFloorDivide;
  const DType type = row.call->type;
  if constexpr (kOp >= Op::kFloorDivide && kOp <= Op::kFmod) {
    if (type == DType::kInt32) return divide_integers<kOp, std::int32_t>(row);
    if (type == DType::kInt64) return divide_integers<kOp, std::int64_t>(row);
  } else {
    if (type == DType::kInt32) return run_row<kOp, std::int32_t>(row);
    if (type == DType::kInt64) return run_row<kOp, std::int64_t>(row);
  }
  if constexpr (kBits || TypedBinary::gives_bool(kOp)) {
    if (type == DType::kBool) return run_row<kOp, std::uint8_t>(row);
  }
  if constexpr (kFloats) {
    if constexpr (kOp >= Op::kFloorDivide && kOp <= Op::kFmod) {
      if (type == DType::kFloat32) return divide_row<kOp, V, float>(row);
      if (type == DType::kBFloat16) return divide_row<kOp, V, BFloat16>(row);
    } else {
      if (type == DType::kFloat32) return run_row<kOp, float>(row);
      if (type == DType::kBFloat16) return run_row<kOp, BFloat16>(row);
    }
  }
}

template <typename V>
[[gnu::always_inline]] inline void run_op(const Row& row) {
  switch (row.call->op) {
    case Op::kAdd:
      return run_typed<Op::kAdd, V>(row);
    case Op::kMultiply:
      return run_typed<Op::kMultiply, V>(row);
    case Op::kMinimum:
      return run_typed<Op::kMinimum, V>(row);
    case Op::kMaximum:
      return run_typed<Op::kMaximum, V>(row);
    case Op::kAbsoluteDifference:
      return run_typed<Op::kAbsoluteDifference, V>(row);
    case Op::kBitAnd:
      return run_typed<Op::kBitAnd, V>(row);
    case Op::kBitOr:
      return run_typed<Op::kBitOr, V>(row);
    case Op::kBitXor:
      return run_typed<Op::kBitXor, V>(row);
    case Op::kFloorDivide:
      return run_typed<Op::kFloorDivide, V>(row);
    case Op::kTruncateDivide:
      return run_typed<Op::kTruncateDivide, V>(row);
    case Op::kRemainder:
      return run_typed<Op::kRemainder, V>(row);
    case Op::kFmod:
      return run_typed<Op::kFmod, V>(row);
    case Op::kEqual:
      return run_typed<Op::kEqual, V>(row);
    case Op::kNotEqual:
      return run_typed<Op::kNotEqual, V>(row);
    case Op::kLess:
      return run_typed<Op::kLess, V>(row);
    case Op::kLessEqual:
      return run_typed<Op::kLessEqual, V>(row);
    case Op::kGreater:
      return run_typed<Op::kGreater, V>(row);
    case Op::kGreaterEqual:
      return run_typed<Op::kGreaterEqual, V>(row);
    case Op::kLogicalAnd:
      return run_typed<Op::kLogicalAnd, V>(row);
    case Op::kLogicalOr:
      return run_typed<Op::kLogicalOr, V>(row);
    case Op::kLogicalXor:
      return run_typed<Op::kLogicalXor, V>(row);
  }
}

void row_anywhere(const Row& row) { run_op<NarrowFloats>(row); }
NPU_TARGET_AVX2 void row_avx2(const Row& row) { run_op<NarrowFloats>(row); }
NPU_TARGET_AVX512 void row_avx512(const Row& row) { run_op<Float16>(row); }

/// One row of a selection.
struct SelectRow {
  const Select* call;
  const std::byte* condition;
  const std::byte* a;
  const std::byte* b;
  std::byte* target;
  std::int64_t count;
};

template <typename T>
[[gnu::always_inline]] inline void select_row(const SelectRow& row) {
  const auto* condition = elements<std::uint8_t>(row.condition);
  const T* a = elements<T>(row.a);
  const T* b = elements<T>(row.b);
  T* target = elements<T>(row.target);
  const std::int64_t strides[4]{row.call->condition_strides.back(), row.call->a_strides.back(),
                                row.call->b_strides.back(), row.call->target_strides.back()};
  const bool in_runs = strides[0] == 1 && strides[3] == 1;
  const std::int64_t count = row.count;
  if (in_runs && strides[1] == 1 && strides[2] == 1) {
    for (std::int64_t i = 0; i < count; ++i) target[i] = condition[i] != 0 ? a[i] : b[i];
  } else if (in_runs && strides[1] == 0 && strides[2] == 1) {
    const T left = a[0];
    for (std::int64_t i = 0; i < count; ++i) target[i] = condition[i] != 0 ? left : b[i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      const bool holds = condition[i * strides[0]] != 0;
      target[i * strides[3]] = holds ? a[i * strides[1]] : b[i * strides[2]];
    }
  }
}

[[gnu::always_inline]] inline void select_sized(const SelectRow& row) {
  switch (row.call->element_size) {
    case 1:
      return select_row<std::uint8_t>(row);
    case 2:
      return select_row<std::uint16_t>(row);
    case 4:
      return select_row<std::uint32_t>(row);
    default:
      return select_row<std::uint64_t>(row);
  }
}

void select_anywhere(const SelectRow& row) { select_sized(row); }
NPU_TARGET_AVX2 void select_avx2(const SelectRow& row) { select_sized(row); }
NPU_TARGET_AVX512 void select_avx512(const SelectRow& row) { select_sized(row); }

/// True if one of the integers in an iteration space is 0.
template <typename T>
bool has_zero(const TypedBinary& call, const T* values) {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < call.extents.size(); ++i) {
    if (call.b_strides[i] == 0) continue;
    extents.push_back(call.extents[i]);
    strides.push_back(call.b_strides[i]);
  }
  if (extents.empty()) return values[0] == 0;
  const std::int64_t width = extents.back();
  const std::int64_t rows = product(extents) / width;
  RowWalk<1> walk(0, extents, 1, {&strides});
  for (std::int64_t row = 0; row < rows; ++row, walk.advance()) {
    const T* first = values + walk.offsets()[0];
    std::int64_t zeros = 0;
    for (std::int64_t i = 0; i < width; ++i) zeros += first[i * strides.back()] == 0 ? 1 : 0;
    if (zeros != 0) return true;
  }
  return false;
}

}  // namespace

bool TypedBinary::supports(Op op, DType type) noexcept {
  switch (type) {
    case DType::kInt32:
    case DType::kInt64:
      return true;
    case DType::kBool:
      return (op >= Op::kBitAnd && op <= Op::kBitXor) || gives_bool(op);
    case DType::kFloat32:
    case DType::kBFloat16:
      return op >= Op::kFloorDivide;
    default:
      return false;
  }
}

void TypedBinary::simplify() { simplify_space(extents, {&target_strides, &a_strides, &b_strides}); }

void TypedBinary::run(const Operands& operands) const {
  const bool divides = op >= Op::kFloorDivide && op <= Op::kFmod;
  if (divides && type == DType::kInt32 ? has_zero(*this, elements<std::int32_t>(operands.b))
                                       : divides && type == DType::kInt64 &&
                                             has_zero(*this, elements<std::int64_t>(operands.b))) {
    throw Error(ErrorCode::kFailed, node + ": an integer is divided by zero");
  }
  const auto body = for_isa(isa, row_anywhere, row_avx2, row_avx512);
  const auto size = static_cast<std::int64_t>(dtype_size(type));
  const std::int64_t target_size = gives_bool(op) ? 1 : size;
  for_each_row(extents, {&a_strides, &b_strides, &target_strides},
               [&](std::int64_t count, const std::int64_t(&offsets)[3]) {
                 body({this, operands.a + offsets[0] * size, operands.b + offsets[1] * size,
                       operands.target + offsets[2] * target_size, count});
               });
}

void Select::simplify() {
  simplify_space(extents, {&target_strides, &condition_strides, &a_strides, &b_strides});
}

void Select::run(const Operands& operands) const {
  const auto body = for_isa(isa, select_anywhere, select_avx2, select_avx512);
  const auto size = static_cast<std::int64_t>(element_size);
  for_each_row(extents, {&condition_strides, &a_strides, &b_strides, &target_strides},
               [&](std::int64_t count, const std::int64_t(&offsets)[4]) {
                 body({this, operands.condition + offsets[0], operands.a + offsets[1] * size,
                       operands.b + offsets[2] * size, operands.target + offsets[3] * size, count});
               });
}

Footprint footprint(const TypedBinary& kernel) {
  require(TypedBinary::supports(kernel.op, kernel.type), "'type' is none that 'op' takes");
  const Count target_size = TypedBinary::gives_bool(kernel.op) ? Count{1} : size_of(kernel.type);
  return FootprintBuilder()
      .read(span_of(kernel.extents, kernel.a_strides), size_of(kernel.type))
      .read(span_of(kernel.extents, kernel.b_strides), size_of(kernel.type))
      .write(target_span_of(kernel.extents, kernel.target_strides), target_size)
      .done();
}

Footprint footprint(const Select& kernel) {
  require(is_element_size(kernel.element_size), "'element_size' is not 1, 2, 4 or 8");
  const Count size = static_cast<std::int64_t>(kernel.element_size);
  return FootprintBuilder()
      .read(span_of(kernel.extents, kernel.condition_strides), 1)
      .read(span_of(kernel.extents, kernel.a_strides), size)
      .read(span_of(kernel.extents, kernel.b_strides), size)
      .write(target_span_of(kernel.extents, kernel.target_strides), size)
      .done();
}

}  // namespace npu::onednn
