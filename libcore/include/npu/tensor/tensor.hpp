// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "npu/tensor/dtype.hpp"

namespace npu {

using Shape = std::vector<std::int64_t>;

/// "[1, 3, 224, 224]".
std::string shape_text(const Shape& shape);

/// A dense row-major tensor in host memory. Copies share their bytes, which live as long as the
/// last copy (they may belong to a mapped file).
class Tensor {
 public:
  /// No tensor: shape [0], no data. Allocates nothing.
  Tensor() = default;
  /// Zero-filled, aligned to 64 bytes. Throws Error kInvalidGraph if the size overflows.
  Tensor(DType dtype, Shape shape);
  /// A tensor over existing bytes: `data` must hold exactly element_count * dtype_size of them.
  Tensor(DType dtype, Shape shape, std::shared_ptr<const std::byte> data);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept {
    return shape_.empty() && element_count_ == 0 ? no_shape() : shape_;
  }
  std::int64_t element_count() const noexcept { return element_count_; }
  std::size_t bytes() const noexcept { return bytes_; }

  const std::byte* data() const noexcept { return data_.get(); }
  /// Writable only for a tensor that this class allocated and that is not shared as const.
  std::byte* mutable_data() noexcept { return const_cast<std::byte*>(data_.get()); }
  template <typename T>
  const T* as() const noexcept {
    return reinterpret_cast<const T*>(data_.get());
  }
  template <typename T>
  T* as_mutable() noexcept {
    return reinterpret_cast<T*>(mutable_data());
  }

  /// Element `index` as a double, whatever the dtype (complex: its real part). For comparison and
  /// display, never for computing results.
  double value_as_double(std::int64_t index) const noexcept;

 private:
  static const Shape& no_shape() noexcept;

  DType dtype_ = DType::kFloat32;
  Shape shape_;  // empty, too, where there is no tensor
  std::int64_t element_count_ = 0;
  std::size_t bytes_ = 0;
  std::shared_ptr<const std::byte> data_;
};

/// The float32 value of bfloat16 bits, exactly.
float bfloat16_to_float(std::uint16_t bits) noexcept;
/// Nearest bfloat16, ties to even; NaN stays NaN.
std::uint16_t float_to_bfloat16(float value) noexcept;
/// The float32 value of IEEE half-precision bits, exactly.
float float16_to_float(std::uint16_t bits) noexcept;
/// Nearest half, ties to even; overflow gives infinity.
std::uint16_t float_to_float16(float value) noexcept;

}  // namespace npu
