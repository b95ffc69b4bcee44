// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/stack.h>

#include <span>
#include <string_view>

namespace npu::aten {

/// An op that torch 2 exports and libtorch 1.13 lacks, or has with another signature, written in
/// terms of ops that it has.
struct Decomposition {
  enum class When {
    kMissing,  ///< only if libtorch lacks the op
    kAlways,   ///< even if libtorch has it
  };
  std::string_view op_type;  ///< "aten.squeeze.dims"
  std::string_view schema;   ///< torch 2's, for npu::parse_schema
  When when;
  void (*run)(torch::jit::Stack& stack);  ///< takes the arguments off the stack, pushes the results
};

/// Grouped by topic, not sorted; search by op_type.
std::span<const Decomposition> decompositions();

}  // namespace npu::aten
