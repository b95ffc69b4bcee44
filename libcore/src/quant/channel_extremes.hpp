// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "npu/tensor/tensor.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu {

/// The elements of a float tensor as float32: its own, or converted into `buffer`. Numbers that
/// float32 cannot hold become infinite. Empty for other dtypes.
std::span<const float> float_values(const Tensor& tensor, std::vector<float>& buffer);

/// Widens `channels` by the finite numbers of a row-major tensor; `channels.axis` says along which
/// axis. O(elements).
void add_extremes(std::span<const float> values, const Shape& shape, ChannelExtremes& channels);

}  // namespace npu
