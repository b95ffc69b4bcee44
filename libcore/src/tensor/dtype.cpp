// SPDX-License-Identifier: Apache-2.0
// The element types, in one table: names, sizes and what kind of number each is.
#include "npu/tensor/dtype.hpp"

#include <array>

namespace npu {
namespace {

struct DTypeRow {
  std::string_view name;
  std::size_t size;
};

constexpr std::array<DTypeRow, kDTypeCount> kRows{{
    {"float32", 4},
    {"float64", 8},
    {"float16", 2},
    {"bfloat16", 2},
    {"int8", 1},
    {"uint8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"bool", 1},
    {"complex64", 8},
    {"complex128", 16},
}};

}  // namespace

std::size_t dtype_size(DType dtype) noexcept { return kRows[static_cast<std::size_t>(dtype)].size; }

std::string_view dtype_name(DType dtype) noexcept {
  return kRows[static_cast<std::size_t>(dtype)].name;
}

std::optional<DType> parse_dtype(std::string_view name) noexcept {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_floating_point(DType dtype) noexcept {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

bool is_integer(DType dtype) noexcept { return dtype >= DType::kInt8 && dtype <= DType::kInt64; }

std::string_view dtype_names() noexcept {
  return "float32, float64, float16, bfloat16, int8, uint8, int16, int32, int64, bool, complex64, "
         "complex128";
}

}  // namespace npu
