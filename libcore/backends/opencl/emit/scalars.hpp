// SPDX-License-Identifier: Apache-2.0
// Dtypes and numbers as C types and constants.
#pragma once

#include <cstdint>
#include <string>

#include "npu/tensor/dtype.hpp"

namespace npu::opencl {

/// The C type of values of a dtype, and the one that they are stored as.
std::string value_type(DType dtype);
std::string storage_type(DType dtype);
/// A number as a constant of value_type(dtype).
std::string literal(double number, DType dtype);
std::string literal(std::int64_t number, DType dtype);
/// An expression of value_type(from) as one of value_type(to).
std::string cast_value(const std::string& value, DType from, DType to);
/// "zero" and limits for reductions.
std::string lowest(DType dtype);
std::string highest(DType dtype);

}  // namespace npu::opencl
