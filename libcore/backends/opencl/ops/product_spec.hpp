// SPDX-License-Identifier: Apache-2.0
// Sums of products, whichever op they come from.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "emit/emitter.hpp"

namespace npu::opencl {

/// result[b, m, n] = the sum over k of left[b, m, k] * right[b, k, n]. The functions emit what they
/// need and return an element's expression; places are names.
struct ProductSpec {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::kFloat32;
  using Operand = std::function<std::string(const std::string& b, const std::string& row,
                                            const std::string& column)>;
  Operand left;
  Operand right;
  bool left_is_transposed = false;   ///< neighbours in m, not in k, lie side by side in memory
  bool right_is_transposed = false;  ///< neighbours in k, not in n, do
  /// Where the result's element lies.
  std::function<Index(const std::string& b, const std::string& m, const std::string& n)> place;
  /// The same for operands whose places follow from parts of a summand and of a column, as those of
  /// a convolution do: kernels compute the parts once for many elements. Null where they do not.
  struct Parts {
    std::function<Index(const std::string& k)> of_summand;  ///< "0" where a part is none
    std::function<Index(const std::string& n)> of_column;
    std::function<std::string(const std::string& b, const Index& summand, const Index& column)>
        right;
    std::function<Index(const std::string& b, const std::string& m, const Index& column)> place;
  };
  std::shared_ptr<const Parts> parts;
  /// What becomes of a sum at a place: a bias, a factor. Null: nothing.
  std::function<std::string(const std::string& sum, const Index& index)> finish;
};

/// Of a node of class kProduct. Throws Error that names it if its operands do not fit.
ProductSpec product_of(Emitter& emitter, NodeId id);
ProductSpec einsum_product(Emitter& emitter, const BoundNode& node);
ProductSpec convolution_product(Emitter& emitter, const BoundNode& node);
/// True for a convolution of few products an element, such as a depthwise one.
bool is_small_convolution(const Model& model, NodeId id);

}  // namespace npu::opencl
