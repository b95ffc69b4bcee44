// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/kernel.hpp"

namespace npu::onednn {

/// Raised by hand when the same fields come to mean something else, or primitives to compute
/// something else than they say. All other changes of a plan's format are found.
inline constexpr std::uint64_t kPlanMeaning = 1;

/// What this build understands as a plan: a digest of the names, types and order of its fields, of
/// what the packing kernels make of fixed numbers, and of kPlanMeaning. A part of the backend's
/// fingerprint, and of every blob. Computed once a process, in less than 1 ms; the same at every
/// level of instructions.
std::uint64_t plan_digest();

/// Fields of packing kernels, of each some that between them show the order of what it makes.
std::vector<Kernel> packing_samples();

/// FNV-1a over a type: its fields' names, types and order, down to numbers. Of the kernels of a
/// Kernel the order does not count, since a plan names them.
class FieldDigest {
 public:
  constexpr std::uint64_t value() const noexcept { return digest_; }

  template <typename T>
  constexpr FieldDigest& add(std::type_identity<T> /*type*/) {
    if constexpr (kHasFields<T>) {
      put("struct");
      std::apply([&](const auto&... field) { (add_field(field), ...); }, kFields<T>);
      put("end");
    } else if constexpr (std::is_array_v<T>) {
      put("array");
      put(std::extent_v<T>);
      add(std::type_identity<std::remove_extent_t<T>>{});
    } else if constexpr (std::is_enum_v<T>) {
      put("enum");
      put(static_cast<std::uint64_t>(kEnumerators<T>));
    } else {
      static_assert(std::is_arithmetic_v<T>);
      put(std::is_same_v<T, bool>       ? "bool"
          : std::is_floating_point_v<T> ? "float"
          : std::is_signed_v<T>         ? "signed"
                                        : "unsigned");
      put(sizeof(T));
    }
    return *this;
  }
  template <typename T>
  constexpr FieldDigest& add(std::type_identity<std::vector<T>> /*type*/) {
    put("list");
    return add(std::type_identity<T>{});
  }
  template <typename T, std::size_t kCount>
  constexpr FieldDigest& add(std::type_identity<std::array<T, kCount>> /*type*/) {
    return add(std::type_identity<T[kCount]>{});
  }
  template <typename T>
  constexpr FieldDigest& add(std::type_identity<std::optional<T>> /*type*/) {
    put("optional");
    return add(std::type_identity<T>{});
  }
  constexpr FieldDigest& add(std::type_identity<std::string> /*type*/) {
    put("text");
    return *this;
  }
  template <typename... Kernels>
  constexpr FieldDigest& add(std::type_identity<std::variant<Kernels...>> /*type*/) {
    put("kernel");
    put((std::uint64_t{0} + ... + of_kernel<Kernels>()));
    return *this;
  }

 private:
  template <typename T>
  static constexpr std::uint64_t of_kernel() {
    FieldDigest digest;
    digest.put(T::kName);
    return digest.add(std::type_identity<T>{}).value();
  }
  template <typename Owner, typename Member>
  constexpr void add_field(const Field<Owner, Member>& field) {
    put(field.name);
    add(std::type_identity<Member>{});
  }
  constexpr void put(std::string_view text) {
    put(text.size());
    for (const char each : text) put(static_cast<std::uint64_t>(each));
  }
  constexpr void put(const char* text) { put(std::string_view(text)); }
  constexpr void put(std::uint64_t number) { digest_ = (digest_ ^ number) * 0x100000001b3U; }

  std::uint64_t digest_ = 0xcbf29ce484222325U;
};

}  // namespace npu::onednn
