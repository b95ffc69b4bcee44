// SPDX-License-Identifier: Apache-2.0
// OpenCL C has no bool in memory and computes float16 and bfloat16 as float.
#include "emit/scalars.hpp"

#include <cmath>
#include <cstdio>

namespace npu::opencl {

std::string value_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "double";
    case DType::kInt8:
      return "char";
    case DType::kUInt8:
    case DType::kBool:
      return "uchar";
    case DType::kInt16:
      return "short";
    case DType::kInt32:
      return "int";
    case DType::kInt64:
      return "long";
    default:
      return "float";
  }
}

std::string storage_type(DType dtype) {
  if (dtype == DType::kFloat16) return "half";
  if (dtype == DType::kBFloat16) return "ushort";
  return value_type(dtype);
}

std::string literal(double number, DType dtype) {
  if (!is_floating_point(dtype)) {
    const bool fits = number > -9.2e18 && number < 9.2e18;
    return literal(fits ? static_cast<std::int64_t>(number) : std::int64_t{0}, dtype);
  }
  const bool is_double = dtype == DType::kFloat64;
  if (std::isnan(number)) return is_double ? "(double)NAN" : "NAN";
  if (std::isinf(number)) {
    const std::string sign = number < 0 ? "-" : "";
    return "(" + sign + (is_double ? "(double)INFINITY)" : "INFINITY)");
  }
  char text[64];
  std::snprintf(text, sizeof text, is_double ? "%.17g" : "%.9g",
                is_double ? number : static_cast<double>(static_cast<float>(number)));
  std::string result = text;
  if (result.find_first_of(".ein") == std::string::npos) result += ".0";
  if (result.find("inf") != std::string::npos) return number < 0 ? "(-INFINITY)" : "INFINITY";
  if (!is_double) result += "f";
  return number < 0 ? "(" + result + ")" : result;
}

std::string literal(std::int64_t number, DType dtype) {
  if (is_floating_point(dtype)) return literal(static_cast<double>(number), dtype);
  if (dtype == DType::kBool) return number != 0 ? "(uchar)1" : "(uchar)0";
  if (number == INT64_MIN) return "((long)(-9223372036854775807L - 1))";
  return "(" + value_type(dtype) + ")(" + std::to_string(number) + "L)";
}

std::string cast_value(const std::string& value, DType from, DType to) {
  if (from == to || value_type(from) == value_type(to)) {
    if (to == DType::kBool && from != to) return "(uchar)(" + value + " != 0)";
    return value;
  }
  if (to == DType::kBool) return "(uchar)(" + value + " != 0)";
  // A float out of the range of a small integer wraps as on a CPU.
  const bool narrows = is_floating_point(from) && is_integer(to) && dtype_size(to) < 4;
  return "(" + value_type(to) + ")" + (narrows ? "(long)" : "") + "(" + value + ")";
}

std::string lowest(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return "(char)(-128)";
    case DType::kInt16:
      return "(short)(-32768)";
    case DType::kInt32:
      return "(-2147483647 - 1)";
    case DType::kInt64:
      return literal(INT64_MIN, dtype);
    case DType::kUInt8:
    case DType::kBool:
      return "(uchar)0";
    default:
      return literal(-INFINITY, dtype);
  }
}

std::string highest(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return "(char)127";
    case DType::kInt16:
      return "(short)32767";
    case DType::kInt32:
      return "2147483647";
    case DType::kInt64:
      return "9223372036854775807L";
    case DType::kUInt8:
      return "(uchar)255";
    case DType::kBool:
      return "(uchar)1";
    default:
      return literal(INFINITY, dtype);
  }
}

}  // namespace npu::opencl
