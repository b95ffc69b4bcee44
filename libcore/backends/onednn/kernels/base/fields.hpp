// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fields of a kernel by name: the one list that writing, reading and comparing descriptors go
// by. It stands below the struct; a field that is missing there does not compile.

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/base/simd.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

template <typename Owner, typename Member>
struct Field {
  const char* name;
  Member Owner::*member;
};

template <typename Owner, typename Member>
constexpr Field<Owner, Member> make_field(const char* name, Member Owner::*member) {
  return {name, member};
}

/// The fields of a struct, as a tuple of Field.
template <typename T>
inline constexpr std::tuple<> kFields{};

/// True for a struct whose fields are listed.
template <typename T>
inline constexpr bool kHasFields = std::tuple_size_v<std::remove_cvref_t<decltype(kFields<T>)>> > 0;

/// Calls visit(name, field) for each, in their order.
template <typename T, typename Visit>
void for_each_field(T& value, Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field.name, value.*field.member), ...); },
             kFields<std::remove_const_t<T>>);
}

/// How many enumerators an enum has, which are 0, 1, ..
template <typename E>
inline constexpr int kEnumerators = 0;
template <>
inline constexpr int kEnumerators<DType> = kDTypeCount;
template <>
inline constexpr int kEnumerators<VectorIsa> = 3;

namespace detail {

/// Becomes any value, to count how many an aggregate takes.
struct AnyValue {
  template <typename T>
  operator T() const;
};

template <typename T, typename... Values>
constexpr std::size_t initializers() {
  if constexpr (requires { T{std::declval<Values>()..., AnyValue{}}; }) {
    return initializers<T, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

/// An array takes a value for each element.
template <typename Owner, typename Member>
constexpr std::size_t initializers_of(const Field<Owner, Member>& /*field*/) {
  return std::is_array_v<Member> ? std::extent_v<Member> : 1;
}

}  // namespace detail

/// True if every field of an aggregate is listed, but `threads`: that is the device's that runs.
template <typename T>
constexpr bool lists_all_fields() {
  const std::size_t listed = std::apply(
      [](const auto&... field) { return (std::size_t{0} + ... + detail::initializers_of(field)); },
      kFields<T>);
  constexpr std::size_t kThreads = requires(T value) { value.threads; }
  ? 1 : 0;
  return listed + kThreads == detail::initializers<T>();
}

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
// A macro cannot name itself: what is left of a list is read again, at most 27 times.
#define NPU_READ_AGAIN(...) NPU_READ_9(NPU_READ_9(NPU_READ_9(__VA_ARGS__)))
#define NPU_READ_9(...) NPU_READ_3(NPU_READ_3(NPU_READ_3(__VA_ARGS__)))
#define NPU_READ_3(...) NPU_READ(NPU_READ(NPU_READ(__VA_ARGS__)))
#define NPU_READ(...) __VA_ARGS__
#define NPU_NEXT_FIELDS() NPU_EACH_FIELD
#define NPU_NO_ARGUMENTS ()
#define NPU_EACH_FIELD(Type, name, ...) \
  make_field(#name, &Type::name) __VA_OPT__(, NPU_NEXT_FIELDS NPU_NO_ARGUMENTS(Type, __VA_ARGS__))

/// NPU_FIELDS(Type, a, b, ..); lists the fields of a struct in the order in which they are written.
#define NPU_FIELDS(Type, ...)                                             \
  template <>                                                             \
  inline constexpr auto kFields<Type> =                                   \
      std::make_tuple(NPU_READ_AGAIN(NPU_EACH_FIELD(Type, __VA_ARGS__))); \
  static_assert(lists_all_fields<Type>(), "a field of " #Type " is not listed, but for 'threads'")
// NOLINTEND(cppcoreguidelines-macro-usage)

}  // namespace npu::onednn
