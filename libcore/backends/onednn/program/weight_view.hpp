// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "npu/ir/graph.hpp"

namespace npu::onednn {

/// A weight in the host's memory: dense and row-major, by the name that the sub-IR uses.
struct WeightView {
  std::string_view name;
  DType dtype = DType::kFloat32;
  Shape shape;
  const void* data = nullptr;  ///< null in a question about a sub-IR
  std::uint64_t bytes = 0;
};

}  // namespace npu::onednn
