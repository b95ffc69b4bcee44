// SPDX-License-Identifier: Apache-2.0
// Reductions of integers and of truth, places of extrema, and running sums. Each number is computed
// by one thread in one order, whatever their number. O(elements).
#include "kernels/scans.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/elements.hpp"
#include "kernels/share_work.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kColumns = 64;  ///< that one thread reduces at a time

/// Calls body(from, to, width) for groups of columns: `from` is the offset of the first element of
/// a group in the source, `to` its place among [outer, inner].
template <typename Kernel, typename Body>
void for_each_group(const Kernel& call, const Body& body) {
  const std::int64_t groups = (call.inner + kColumns - 1) / kColumns;
  const int threads = threads_for(call.outer * call.count * call.inner >= kParallelElements);
  share_pieces(call.outer * groups, threads, [&](std::int64_t piece, int) {
    const std::int64_t outer = piece / groups;
    const std::int64_t begin = piece % groups * kColumns;
    body(outer * call.count * call.inner + begin, outer * call.inner + begin,
         std::min(kColumns, call.inner - begin));
  });
}

using IntegerOp = IntegerReduction::Op;

template <IntegerOp kOp>
inline std::int64_t reduce(std::int64_t sum, std::int64_t value) {
  const auto a = static_cast<std::uint64_t>(sum);
  const auto b = static_cast<std::uint64_t>(value);
  if constexpr (kOp == IntegerOp::kSum) return static_cast<std::int64_t>(a + b);
  if constexpr (kOp == IntegerOp::kProduct) return static_cast<std::int64_t>(a * b);
  if constexpr (kOp == IntegerOp::kMinimum) return std::min(sum, value);
  if constexpr (kOp == IntegerOp::kMaximum) return std::max(sum, value);
  if constexpr (kOp == IntegerOp::kAny) return static_cast<std::int64_t>(sum != 0 || value != 0);
  return static_cast<std::int64_t>(sum != 0 && value != 0);
}

template <IntegerOp kOp, typename T, typename To>
void reduce_integers(const IntegerReduction& call, const T* source, To* target) {
  constexpr std::int64_t kStart = kOp == IntegerOp::kMinimum ? INT64_MAX
                                  : kOp == IntegerOp::kMaximum
                                      ? INT64_MIN
                                      : kOp == IntegerOp::kProduct || kOp == IntegerOp::kAll;
  for_each_group(call, [&](std::int64_t from, std::int64_t to, std::int64_t width) {
    if (call.inner == 1) {
      constexpr std::int64_t kLanes = 8;
      std::int64_t lanes[kLanes];
      std::fill_n(lanes, kLanes, kStart);
      const T* row = source + from;
      const std::int64_t whole = call.count / kLanes * kLanes;
      for (std::int64_t i = 0; i < whole; i += kLanes) {
        for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] = reduce<kOp>(lanes[j], row[i + j]);
      }
      for (std::int64_t i = whole; i < call.count; ++i) lanes[0] = reduce<kOp>(lanes[0], row[i]);
      std::int64_t sum = lanes[0];
      for (std::int64_t j = 1; j < kLanes; ++j) sum = reduce<kOp>(sum, lanes[j]);
      target[to] = static_cast<To>(sum);
      return;
    }
    std::int64_t sums[kColumns];
    std::fill_n(sums, width, kStart);
    for (std::int64_t i = 0; i < call.count; ++i) {
      const T* row = source + from + i * call.inner;
      for (std::int64_t j = 0; j < width; ++j) sums[j] = reduce<kOp>(sums[j], row[j]);
    }
    for (std::int64_t j = 0; j < width; ++j) target[to + j] = static_cast<To>(sums[j]);
  });
}

template <typename T>
void reduce_typed(const IntegerReduction& call, const T* source, std::byte* target) {
  switch (call.op) {
    case IntegerOp::kSum:
      return reduce_integers<IntegerOp::kSum>(call, source, elements<std::int64_t>(target));
    case IntegerOp::kProduct:
      return reduce_integers<IntegerOp::kProduct>(call, source, elements<std::int64_t>(target));
    case IntegerOp::kMinimum:
      return reduce_integers<IntegerOp::kMinimum>(call, source, elements<T>(target));
    case IntegerOp::kMaximum:
      return reduce_integers<IntegerOp::kMaximum>(call, source, elements<T>(target));
    case IntegerOp::kAny:
      return reduce_integers<IntegerOp::kAny>(call, source, elements<std::uint8_t>(target));
    case IntegerOp::kAll:
      return reduce_integers<IntegerOp::kAll>(call, source, elements<std::uint8_t>(target));
  }
}

template <typename T>
auto comparable(T value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return load(value);
  } else {
    return value;
  }
}

/// True if the value takes the place of the best one so far; NaN keeps its place.
template <bool kGreatest, typename T>
inline bool is_better(T value, T best) {
  if (best != best) return false;
  return value != value || (kGreatest ? value > best : value < best);
}

/// Among elements that follow each other: the extremum first, then where it stands.
template <bool kGreatest, typename T>
std::int64_t place_in_run(const T* row, std::int64_t count) {
  auto best = comparable(row[0]);
  bool has_nan = best != best;
  for (std::int64_t i = 1; i < count; ++i) {
    const auto value = comparable(row[i]);
    has_nan |= value != value;
    best = (kGreatest ? value > best : value < best) ? value : best;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = comparable(row[i]);
    if (has_nan ? value != value : value == best) return i;
  }
  return 0;
}

template <bool kGreatest, typename T>
void find_places(const ArgReduction& call, const T* source, std::byte* target) {
  auto* places = elements<std::int64_t>(target);
  T* values = elements<T>(target + call.outer * call.inner * 8);
  for_each_group(call, [&](std::int64_t from, std::int64_t to, std::int64_t width) {
    if (call.inner == 1) {
      const std::int64_t place = place_in_run<kGreatest>(source + from, call.count);
      places[to] = place;
      if (call.has_values) values[to] = source[from + place];
      return;
    }
    T best[kColumns];
    std::int64_t place[kColumns]{};
    std::copy_n(source + from, width, best);
    for (std::int64_t i = 1; i < call.count; ++i) {
      const T* row = source + from + i * call.inner;
      for (std::int64_t j = 0; j < width; ++j) {
        if (!is_better<kGreatest>(comparable(row[j]), comparable(best[j]))) continue;
        best[j] = row[j];
        place[j] = i;
      }
    }
    std::copy_n(place, width, places + to);
    if (call.has_values) std::copy_n(best, width, values + to);
  });
}

template <typename T>
void find_typed(const ArgReduction& call, const std::byte* source, std::byte* target) {
  if (call.greatest) {
    find_places<true>(call, elements<T>(source), target);
  } else {
    find_places<false>(call, elements<T>(source), target);
  }
}

template <typename Sum, typename T>
void add_up(const RunningSum& call, const T* source, T* target) {
  const auto put = [](T& to, Sum& sum, const T& from) {
    if constexpr (std::is_integral_v<Sum>) {
      sum += static_cast<Sum>(from);
      to = static_cast<T>(sum);
    } else {
      sum += static_cast<Sum>(load(from));
      store(to, static_cast<float>(sum));
    }
  };
  for_each_group(call, [&](std::int64_t from, std::int64_t /*to*/, std::int64_t width) {
    if (call.inner == 1) {
      Sum sum{};
      for (std::int64_t i = from; i < from + call.count; ++i) put(target[i], sum, source[i]);
      return;
    }
    Sum sums[kColumns]{};
    for (std::int64_t i = 0; i < call.count; ++i) {
      const std::int64_t row = from + i * call.inner;
      for (std::int64_t j = 0; j < width; ++j) {
        put(target[row + j], sums[j], source[row + j]);
      }
    }
  });
}

}  // namespace

DType IntegerReduction::result_type() const noexcept {
  if (op == Op::kSum || op == Op::kProduct) return DType::kInt64;
  return op == Op::kAny || op == Op::kAll ? DType::kBool : type;
}

void IntegerReduction::run(const Operands& operands) const {
  const auto [source, target] = operands;
  switch (type) {
    case DType::kInt32:
      return reduce_typed(*this, elements<std::int32_t>(source), target);
    case DType::kInt64:
      return reduce_typed(*this, elements<std::int64_t>(source), target);
    default:
      return reduce_typed(*this, elements<std::uint8_t>(source), target);
  }
}

void ArgReduction::run(const Operands& operands) const {
  const auto [source, target] = operands;
  switch (type) {
    case DType::kFloat32:
      return find_typed<float>(*this, source, target);
    case DType::kBFloat16:
      return find_typed<BFloat16>(*this, source, target);
    case DType::kInt32:
      return find_typed<std::int32_t>(*this, source, target);
    case DType::kInt64:
      return find_typed<std::int64_t>(*this, source, target);
    default:
      return find_typed<std::uint8_t>(*this, source, target);
  }
}

void RunningSum::run(const Operands& operands) const {
  const auto [source, target] = operands;
  switch (type) {
    case DType::kFloat32:
      return add_up<double>(*this, elements<float>(source), elements<float>(target));
    case DType::kBFloat16:
      return add_up<double>(*this, elements<BFloat16>(source), elements<BFloat16>(target));
    default:
      return add_up<std::uint64_t>(*this, elements<std::int64_t>(source),
                                   elements<std::int64_t>(target));
  }
}

}  // namespace npu::onednn
