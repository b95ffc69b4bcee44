// SPDX-License-Identifier: Apache-2.0
// Reductions of integers and of truth, places of extrema, and running sums. Short rows are shared
// in pieces of many, and one long row in parts, whose results do not depend on where they are cut:
// integers add up to the same in any order, and the first extremum is the first among those of the
// parts. Running sums are computed by one thread in one order. O(elements).
#include "kernels/reduction/scans.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kColumns = 64;  ///< that one thread reduces at a time

/// Calls body(from, to, width) for groups of columns: `from` is the offset of the first element of
/// a group in the source, `to` its place among [outer, inner].
template <typename Kernel, typename Body>
void for_each_group(const Kernel& call, const Body& body) {
  constexpr std::int64_t kPiece = 4096;  // elements for a thread, where rows are short
  const std::int64_t groups = (call.inner + kColumns - 1) / kColumns;
  const std::int64_t size = std::max<std::int64_t>(1, call.count * std::min(call.inner, kColumns));
  const int threads = threads_for(call.outer * call.count * call.inner >= kParallelElements);
  share_range(call.outer * groups, std::max<std::int64_t>(1, kPiece / size), threads,
              [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t piece = first; piece < last; ++piece) {
                  const std::int64_t outer = piece / groups;
                  const std::int64_t begin = piece % groups * kColumns;
                  body(outer * call.count * call.inner + begin, outer * call.inner + begin,
                       std::min(kColumns, call.inner - begin));
                }
              });
}

/// A row in parts for several threads.
struct Parts {
  static constexpr std::int64_t kMost = 64;
  static constexpr std::int64_t kLeastElements = 16384;
  std::int64_t length = 0;  ///< of all but the last
  std::int64_t count = 0;   ///< 1: rows are not cut

  /// Rows whose elements follow each other, where there are fewer of them than threads.
  template <typename Kernel>
  static Parts of(const Kernel& call) {
    if (call.inner != 1 || call.outer >= threads_for(true)) return {call.count, 1};
    const std::int64_t most = std::min(kMost, call.count / kLeastElements);
    if (most <= 1) return {call.count, 1};
    const std::int64_t length = (call.count + most - 1) / most;
    return {length, (call.count + length - 1) / length};
  }
};

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

template <IntegerOp kOp>
inline constexpr std::int64_t kStartOf =
    kOp == IntegerOp::kMinimum   ? INT64_MAX
    : kOp == IntegerOp::kMaximum ? INT64_MIN
                                 : kOp == IntegerOp::kProduct || kOp == IntegerOp::kAll;

template <IntegerOp kOp, typename T>
std::int64_t reduce_run(const T* row, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  std::int64_t lanes[kLanes];
  std::fill_n(lanes, kLanes, kStartOf<kOp>);
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] = reduce<kOp>(lanes[j], row[i + j]);
  }
  for (std::int64_t i = whole; i < count; ++i) lanes[0] = reduce<kOp>(lanes[0], row[i]);
  for (std::int64_t j = 1; j < kLanes; ++j) lanes[0] = reduce<kOp>(lanes[0], lanes[j]);
  return lanes[0];
}

template <IntegerOp kOp, typename T, typename To>
void reduce_integers(const IntegerReduction& call, const T* source, To* target) {
  const Parts parts = Parts::of(call);
  if (parts.count > 1) {
    for (std::int64_t outer = 0; outer < call.outer; ++outer) {
      const T* row = source + outer * call.count;
      std::int64_t results[Parts::kMost];
      share_pieces(parts.count, threads_for(true), [&](std::int64_t part, int) {
        const std::int64_t begin = part * parts.length;
        results[part] = reduce_run<kOp>(row + begin, std::min(parts.length, call.count - begin));
      });
      target[outer] = static_cast<To>(reduce_run<kOp>(results, parts.count));
    }
    return;
  }
  for_each_group(call, [&](std::int64_t from, std::int64_t to, std::int64_t width) {
    if (call.inner == 1) {
      target[to] = static_cast<To>(reduce_run<kOp>(source + from, call.count));
      return;
    }
    std::int64_t sums[kColumns];
    std::fill_n(sums, width, kStartOf<kOp>);
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
  const Parts parts = Parts::of(call);
  if (parts.count > 1) {
    for (std::int64_t outer = 0; outer < call.outer; ++outer) {
      const T* row = source + outer * call.count;
      std::int64_t found[Parts::kMost];
      share_pieces(parts.count, threads_for(true), [&](std::int64_t part, int) {
        const std::int64_t begin = part * parts.length;
        found[part] = begin + place_in_run<kGreatest>(row + begin,
                                                      std::min(parts.length, call.count - begin));
      });
      std::int64_t place = found[0];
      for (std::int64_t part = 1; part < parts.count; ++part) {
        const bool precedes =
            is_better<kGreatest>(comparable(row[found[part]]), comparable(row[place]));
        if (precedes) place = found[part];
      }
      places[outer] = place;
      if (call.has_values) values[outer] = row[place];
    }
    return;
  }
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

namespace {

/// [outer, count, inner]
template <typename Kernel>
Count elements_of(const Kernel& kernel) {
  return at_least_one(kernel.outer, "outer") * at_least_one(kernel.count, "count") *
         at_least_one(kernel.inner, "inner");
}

}  // namespace

Footprint footprint(const IntegerReduction& kernel) {
  require(is_countable(kernel.type), "'type' is not int32, int64 or bool");
  return FootprintBuilder()
      .read(elements_of(kernel), size_of(kernel.type))
      .write(Count{kernel.outer} * kernel.inner, size_of(kernel.result_type()))
      .done();
}

Footprint footprint(const ArgReduction& kernel) {
  require(is_float(kernel.type) || is_countable(kernel.type), "'type' is none that it compares");
  const Count elements = elements_of(kernel);
  const Count results = Count{kernel.outer} * kernel.inner;
  Footprint result =
      FootprintBuilder().read(elements, size_of(kernel.type)).write(results, 8).done();
  if (kernel.has_values) {
    const Count values = results * size_of(kernel.type);
    result.write.bytes += static_cast<std::size_t>(values.value());
  }
  return result;
}

Footprint footprint(const RunningSum& kernel) {
  require(is_float(kernel.type) || kernel.type == DType::kInt64,
          "'type' is not float32, bfloat16 or int64");
  const Count elements = elements_of(kernel);
  return FootprintBuilder()
      .read(elements, size_of(kernel.type))
      .write(elements, size_of(kernel.type))
      .done();
}

}  // namespace npu::onednn
