// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// Node features, float32 [n, F]: .npy, safetensors (the tensor "x" or "features", or the only
/// one), or MatrixMarket (coordinate or array). Throws Error kParse.
Tensor read_features(const std::string& path);
Tensor parse_matrix_market_features(std::string_view bytes, const std::string& file);

}  // namespace npu::gnn
