// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/stack.h>

#include <span>
#include <string_view>

namespace npu::aten {

/// An op that torch 2 exports and libtorch 1.13 lacks, or has with another signature, written with
/// ops that it has.
struct Decomposition {
  enum class When {
    kMissing,  ///< only where libtorch lacks the op
    kAlways,   ///< also where libtorch has it
  };
  std::string_view op_type;  ///< "aten.squeeze.dims"
  std::string_view schema;   ///< for npu::parse_schema, as torch 2 has it
  When when;
  void (*run)(torch::jit::Stack& stack);  ///< takes the arguments off the stack, pushes the results
};

/// Sorted as a reader would look for them; search by op_type.
std::span<const Decomposition> decompositions();

}  // namespace npu::aten
