// SPDX-License-Identifier: Apache-2.0
// Loops for element-wise ops on tensors of a few elements, of which exported graphs are full:
// arithmetic on positions, masks and scales. There libtorch's dispatcher, iterator and allocator
// cost ten times as much as the arithmetic.
//
// Only ops whose result is defined bit for bit by IEEE 754 or by wrapping integers are here, so a
// program gives the same bytes with and without them.
#include "direct_elementwise.hpp"

#include <cmath>
#include <functional>
#include <type_traits>

namespace npu::aten {
namespace {

template <typename T, typename Op>
void binary(const void* a, const void* b, void* out, std::int64_t count) {
  const T* const x = static_cast<const T*>(a);
  const T* const y = static_cast<const T*>(b);
  T* const z = static_cast<T*>(out);
  for (std::int64_t i = 0; i < count; ++i) z[i] = Op()(x[i], y[i]);
}

template <typename T, typename Op>
void unary(const void* a, const void* /*b*/, void* out, std::int64_t count) {
  const T* const x = static_cast<const T*>(a);
  T* const z = static_cast<T*>(out);
  for (std::int64_t i = 0; i < count; ++i) z[i] = Op()(x[i]);
}

// Signed overflow wraps, as in libtorch.
template <typename T, typename Op>
struct Wrapping {
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      using Bits = std::make_unsigned_t<T>;
      return static_cast<T>(Op()(static_cast<Bits>(x), static_cast<Bits>(y)));
    } else {
      return Op()(x, y);
    }
  }
};

template <typename T>
struct Negate {
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
    } else {
      return -x;
    }
  }
};

template <typename T>
DirectFunction of_type(std::string_view op, int operands) {
  if (operands == 1) return op == "neg" ? &unary<T, Negate<T>> : nullptr;
  if (op == "add") return &binary<T, Wrapping<T, std::plus<>>>;
  if (op == "sub") return &binary<T, Wrapping<T, std::minus<>>>;
  if (op == "mul") return &binary<T, Wrapping<T, std::multiplies<>>>;
  if constexpr (std::is_floating_point_v<T>) {
    if (op == "div") return &binary<T, std::divides<T>>;
  }
  return nullptr;
}

}  // namespace

DirectFunction find_direct(std::string_view op_type, c10::ScalarType type, int operands) {
  constexpr std::string_view kPrefix = "aten.";
  if (!op_type.starts_with(kPrefix)) return nullptr;
  std::string_view op = op_type.substr(kPrefix.size());
  const std::string_view overload = operands == 1 ? ".default" : ".Tensor";
  if (!op.ends_with(overload)) return nullptr;
  op.remove_suffix(overload.size());
  // In-place ops are functional in a document.
  if (op.ends_with("_")) op.remove_suffix(1);
  switch (type) {
    case c10::ScalarType::Float:
      return of_type<float>(op, operands);
    case c10::ScalarType::Double:
      return of_type<double>(op, operands);
    case c10::ScalarType::Long:
      return of_type<std::int64_t>(op, operands);
    case c10::ScalarType::Int:
      return of_type<std::int32_t>(op, operands);
    default:
      return nullptr;
  }
}

}  // namespace npu::aten
