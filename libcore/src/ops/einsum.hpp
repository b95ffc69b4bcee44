// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu {

/// An einsum of two operands that is one batched product of matrices. Labels are letters;
/// dimensions that "..." stands for are labelled by digits, counted from the last one.
struct EinsumProduct {
  std::vector<std::string> operands;  ///< two
  std::string result;
  std::string batch;    ///< in both operands and the result, in the order of the result
  std::string rows;     ///< in the first operand and the result
  std::string columns;  ///< in the second operand and the result
  std::string inner;    ///< in both operands alone
  std::map<char, std::int64_t> extents;

  Shape shape_of(const std::string& labels) const;
  std::int64_t count_of(const std::string& labels) const;
};

/// Nothing, and why, if an equation is not one, does not fit `shapes`, or is no such product: a
/// label stands twice in an operand, is summed in one operand alone, or has two extents.
std::optional<EinsumProduct> read_einsum_product(const std::string& equation,
                                                 const std::vector<Shape>& shapes,
                                                 std::string& reason);

}  // namespace npu
