// SPDX-License-Identifier: Apache-2.0
// Shared by the files of this backend: the mapping between dtypes.
#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "kit/boundary.hpp"
#include "npu/backend.h"
#include "npu/tensor/dtype.hpp"

namespace npu::aten {

// In the order of npu_dtype and npu::DType.
inline constexpr std::array<c10::ScalarType, kDTypeCount> kScalarTypes = {
    c10::ScalarType::Float,    c10::ScalarType::Double,       c10::ScalarType::Half,
    c10::ScalarType::BFloat16, c10::ScalarType::Char,         c10::ScalarType::Byte,
    c10::ScalarType::Short,    c10::ScalarType::Int,          c10::ScalarType::Long,
    c10::ScalarType::Bool,     c10::ScalarType::ComplexFloat, c10::ScalarType::ComplexDouble};

inline c10::ScalarType scalar_type(DType dtype) {
  return kScalarTypes[static_cast<std::size_t>(dtype)];
}

/// Nothing for types that the IR lacks: quantized and 32-bit complex ones.
inline std::optional<DType> dtype_of(c10::ScalarType type) {
  for (std::size_t i = 0; i < kScalarTypes.size(); ++i) {
    if (kScalarTypes[i] == type) return static_cast<DType>(i);
  }
  return std::nullopt;
}

/// "float32", or libtorch's name of a type that the IR lacks.
inline std::string type_text(c10::ScalarType type) {
  const auto dtype = dtype_of(type);
  return std::string(dtype ? dtype_name(*dtype) : std::string_view(c10::toString(type)));
}

}  // namespace npu::aten
