// SPDX-License-Identifier: Apache-2.0
#pragma once

// What footprints are computed with: counts that do not overflow, the spans of iteration spaces,
// and the list of operands.
//
// A footprint is the other half of a kernel's `run`: what that comes to read or write more has to
// be said there, and a test compares the two with guard pages around every operand. Numbers are
// checked in two ways. Fields have a range of their own; and what follows from them is computed
// with checks for overflow, up to kMaxOperandBytes, so that no index that a kernel computes
// overflows either. O(fields).

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/epilogue.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/base/refuse.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// A count that is at least 0, at most kMaxOperandBytes.
class Count {
 public:
  constexpr Count(std::int64_t value) : value_(value) {  // NOLINT: numbers are counts
    if (value < 0 || value > kMaxOperandBytes) refuse("a size is negative or too large");
  }
  std::int64_t value() const { return value_; }

  friend Count operator+(Count a, Count b) { return {a.value_ + b.value_}; }
  friend Count operator*(Count a, Count b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a.value_, b.value_, &product)) refuse("a size is too large");
    return {product};
  }

 private:
  std::int64_t value_;
};

/// A field that counts something, of which there is at least one.
inline Count at_least_one(std::int64_t value, const char* field) {
  if (value < 1) refuse(std::string("'") + field + "' is " + std::to_string(value));
  return {value};
}

inline bool is_float(DType type) { return type == DType::kFloat32 || type == DType::kBFloat16; }

/// Elements that are whole numbers, or truth.
inline bool is_countable(DType type) {
  return type == DType::kInt32 || type == DType::kInt64 || type == DType::kBool;
}

/// What kernels move whatever it is.
inline bool is_element_size(std::size_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

inline Count size_of(DType type) { return {static_cast<std::int64_t>(dtype_size(type))}; }

inline constexpr std::int64_t kFloat = sizeof(float);

class FootprintBuilder {
 public:
  FootprintBuilder& read(Count elements, Count element_size = kFloat, bool may_be_target = false) {
    result_.reads.push_back(access(elements, element_size));
    result_.reads.back().may_be_target = may_be_target;
    return *this;
  }
  FootprintBuilder& read_if(bool exists, Count elements) { return exists ? read(elements) : *this; }
  /// What an epilogue adds or multiplies with, which lies like the target.
  FootprintBuilder& read_epilogue(const std::vector<EpilogueStep>& steps, Count elements) {
    std::size_t operands = 0;
    for (const EpilogueStep& step : steps) {
      if (!step.reads_operand()) continue;
      require(++operands <= kMaxEpilogueOperands, "'epilogue' reads too many operands");
      read(elements);
    }
    return *this;
  }
  FootprintBuilder& write(Count elements, Count element_size = kFloat) {
    result_.write = access(elements, element_size);
    return *this;
  }
  /// `each` bytes for each of `threads` are an upper bound, which keeps
  /// the kernel's own formula from overflowing.
  template <typename Each>
  Footprint with_scratch(const Each& kernel, Count each) {
    require(kernel.threads >= 1, "'threads' is below 1");
    static_cast<void>(each * Count{kernel.threads});
    result_.scratch_bytes = kernel.scratch_bytes();
    require(result_.scratch_bytes <= static_cast<std::size_t>(kMaxOperandBytes),
            "the scratch memory is too large");
    return std::move(result_);
  }
  Footprint done() { return std::move(result_); }

 private:
  static Access access(Count elements, Count element_size) {
    const Count bytes = elements * element_size;
    require(bytes.value() > 0, "an operand has no elements");
    return {static_cast<std::size_t>(bytes.value()),
            static_cast<std::size_t>(std::min<std::int64_t>(element_size.value(), 8))};
  }

  Footprint result_;
};

inline void require_isa(VectorIsa isa, VectorIsa least) {
  require(isa >= least, "'isa' is below what the kernel needs");
}

inline void require_no_operands(const std::vector<EpilogueStep>& steps) {
  for (const EpilogueStep& step : steps) {
    require(!step.has_operand(), "an epilogue reads an operand where none can");
  }
}

/// One more than the last of `count` elements that are `stride` apart, from element 0 on.
inline Count last_of(Count count, std::int64_t stride) {
  return {(count * Count{stride}).value() - stride};
}

/// Elements from the first to the last one of an iteration space.
inline Count span_of(const std::vector<std::int64_t>& extents,
                     const std::vector<std::int64_t>& strides) {
  require(!extents.empty() && extents.size() == strides.size(),
          "extents and strides are not of one rank");
  require(extents.size() <= kMostDimensions, "'extents' are more than 16");
  Count span = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    span = span + last_of(at_least_one(extents[i], "extents"), strides[i]);
  }
  return span;
}

inline Count count_of(const std::vector<std::int64_t>& extents) {
  Count count = 1;
  for (const std::int64_t extent : extents) count = count * at_least_one(extent, "extents");
  return count;
}

/// The same for a target. No element is written twice, which bounds the time by the memory.
inline Count target_span_of(const std::vector<std::int64_t>& extents,
                            const std::vector<std::int64_t>& strides) {
  const Count span = span_of(extents, strides);
  require(count_of(extents).value() <= span.value(), "target strides repeat elements");
  return span;
}

}  // namespace npu::onednn
