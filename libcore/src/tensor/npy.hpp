// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "npu/tensor/tensor.hpp"

namespace npu {

/// Reads one array of NumPy's .npy format (versions 1 to 3, NEP 1), little-endian, C or Fortran
/// order (the result is always row-major). NumPy has no bfloat16: "V2" is read as
/// bfloat16, and so is "<u2" if `expected` is bfloat16. Throws Error kParse.
Tensor parse_npy(std::string_view bytes, const std::string& file, const DType* expected = nullptr);
Tensor read_npy(const std::string& path, const DType* expected = nullptr);
/// As read_npy, but an array in C order is not copied: it shares the mapped file, at any alignment,
/// so that its bytes are for memcpy only. A pipe is read.
Tensor map_npy(const std::string& path, const DType* expected = nullptr);

/// What the header of a .npy says, and where the data begins, in bytes.
struct NpyLayout {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool fortran_order = false;  ///< and more than one dimension
  std::size_t offset = 0;
};
/// The layout of a regular file, whose data is not read. Throws Error kParse.
NpyLayout npy_layout(const std::string& path);

/// What stands before the data of an array in C order, version 1.0.
std::string npy_header(DType dtype, const Shape& dimensions);
/// Writes version 1.0, C order, atomically. bfloat16 is written as "V2" (two raw bytes), as NumPy
/// shows ml_dtypes.bfloat16 without that package.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace npu
