// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two operands with broadcasting, beyond the patterns of oneDNN's primitive. Bound by
// memory; rows are shared among threads. O(elements).
#include "kernels/elementwise/broadcast.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/iteration_space.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

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
  for_each_row(call.extents, {&call.a_strides, &call.b_strides, &call.target_strides},
               [&](std::int64_t count, const std::int64_t(&offsets)[3]) {
                 binary_row<kOp>(count, a + offsets[0], call.a_strides[last], b + offsets[1],
                                 call.b_strides[last], target + offsets[2],
                                 call.target_strides[last], call.alpha);
               });
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

}  // namespace

void BroadcastBinary::simplify() {
  simplify_space(extents, {&target_strides, &a_strides, &b_strides});
}

void BroadcastBinary::run(const Operands& operands) const {
  const auto [a, b, target] = operands;
  if (type == DType::kFloat32) {
    binary_typed<float, float>(*this, a, b, target);
  } else if (b_type == DType::kBFloat16) {
    binary_typed<BFloat16, BFloat16>(*this, a, b, target);
  } else {
    binary_typed<BFloat16, float>(*this, a, b, target);
  }
}

Footprint footprint(const BroadcastBinary& kernel) {
  require(is_float(kernel.type) && is_float(kernel.b_type), "a type is no float type");
  require(kernel.type == DType::kBFloat16 || kernel.b_type == DType::kFloat32,
          "'b_type' is not float32, as 'type' is");
  return FootprintBuilder()
      .read(span_of(kernel.extents, kernel.a_strides), size_of(kernel.type),
            kernel.a_strides == kernel.target_strides)
      .read(span_of(kernel.extents, kernel.b_strides), size_of(kernel.b_type))
      .write(target_span_of(kernel.extents, kernel.target_strides), size_of(kernel.type))
      .done();
}

}  // namespace npu::onednn
