// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "npu/ir/graph.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// Random data that depends only on seed and name, the same on every machine. Weights keep
/// activations in range: matrices and kernels have deviation 1/sqrt(fan-in), variances (names that
/// end in "var") lie in [0.5, 1.5], other vectors within 0.1 of 1 (names that end in "weight") or
/// of 0; integers and bools are 0.
Tensor random_weight(DType dtype, const Shape& shape, std::string_view name, std::uint64_t seed);

/// Input data: floats with a standard normal distribution, bools of either value, integers in [0,
/// bound), where bound is the number of rows of the embeddings that read the tensor, else 2.
Tensor random_input(const Graph& graph, TensorId input, std::uint64_t seed);

}  // namespace npu
