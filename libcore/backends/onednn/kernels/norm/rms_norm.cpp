// SPDX-License-Identifier: Apache-2.0
// The root of the mean square of a row, and the row by it. Sums are float64; so are the products of
// a row whose numbers are so large that the factor is no normal number of float32. Each row is
// computed by one thread, in an order that depends on no instruction set. O(elements).
#include "kernels/norm/rms_norm.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/norm/double_sums.hpp"

namespace npu::onednn {

namespace {

/// Below this, the root of the sum of squares is no smaller than the largest element, and the
/// factor is a normal number.
constexpr double kMaxFloatRange = 1e37;

/// Elements [first, count) of a row times the factor, with weights.
template <typename Number, typename T>
[[gnu::always_inline]] inline void scale_each(const T* from, std::int64_t first, std::int64_t count,
                                              Number factor, const float* weight, T* to) {
  for (std::int64_t i = first; i < count; ++i) {
    auto value = static_cast<float>(static_cast<Number>(load(from[i])) * factor);
    if (weight != nullptr) value *= weight[i];
    store(to[i], value);
  }
}

template <typename V, typename T>
[[gnu::always_inline]] inline void scale_row(const T* from, std::int64_t count, float factor,
                                             const float* weight, T* to) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    V value = load_as_floats<V>(from + i) * factor;
    if (weight != nullptr) value *= load_vector<V>(weight + i);
    store_floats(to + i, value);
  }
  scale_each(from, whole, count, factor, weight, to);
}

/// Some rows of a call.
struct Part {
  const RmsNorm* call;
  const RmsNorm::Operands* operands;
  std::int64_t first;
  std::int64_t last;
};

template <typename V, typename T>
[[gnu::always_inline]] inline void norm_rows(const Part& part) {
  const RmsNorm& call = *part.call;
  const float* weight = part.operands->weight;
  for (std::int64_t row = part.first; row < part.last; ++row) {
    const T* from = elements<T>(part.operands->source) + row * call.inner;
    T* to = elements<T>(part.operands->target) + row * call.inner;
    const double squares = sum_of_run<true>(from, call.inner, 0.0);
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(call.inner) +
                                          static_cast<double>(call.epsilon));
    // NaN takes the way in float32.
    if (std::sqrt(squares) >= kMaxFloatRange) {
      scale_each(from, 0, call.inner, factor, weight, to);
    } else {
      scale_row<V>(from, call.inner, static_cast<float>(factor), weight, to);
    }
  }
}

template <typename V>
[[gnu::always_inline]] inline void norm_any(const Part& part) {
  part.call->type == DType::kFloat32 ? norm_rows<V, float>(part) : norm_rows<V, BFloat16>(part);
}

void norm_anywhere(const Part& part) { norm_any<NarrowFloats>(part); }
NPU_TARGET_AVX2 void norm_avx2(const Part& part) { norm_any<NarrowFloats>(part); }
NPU_TARGET_AVX512 void norm_avx512(const Part& part) { norm_any<Float16>(part); }

}  // namespace

RmsNorm::Operands RmsNorm::bind(Addresses addresses) const {
  OperandReader in(addresses);
  return {in.next<const std::byte>(), in.next_if<const float>(has_weight), in.next<std::byte>()};
}

void RmsNorm::run(const Operands& operands) const {
  constexpr std::int64_t kElements = 4096;  // of a piece, about
  const auto body = for_isa(isa, norm_anywhere, norm_avx2, norm_avx512);
  share_range(rows, std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(inner, 1)),
              threads_for(rows * inner >= kParallelElements),
              [&](std::int64_t first, std::int64_t last) {
                body({this, &operands, first, last});
              });
}

Footprint footprint(const RmsNorm& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  const Count inner = at_least_one(kernel.inner, "inner");
  const Count elements = at_least_one(kernel.rows, "rows") * inner;
  return FootprintBuilder()
      .read(elements, size_of(kernel.type))
      .read_if(kernel.has_weight, inner)
      .write(elements, size_of(kernel.type))
      .done();
}

}  // namespace npu::onednn
