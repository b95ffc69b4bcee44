// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace npu::onednn {

/// What a CPU can do with bfloat16.
enum class BFloat16Products : unsigned char { kNone, kPairs, kTiles };

/// How many multiply-adds of bfloat16 a CPU of a family (device/cpu_family.hpp) does in the
/// time of one of float32, both in its widest instructions and in registers, as
/// scripts/bench/peak_rates.cpp measures them; of another family a rate that no CPU with such
/// instructions is below. 0 without them.
double bfloat16_rate_of(std::string_view family, BFloat16Products products);

}  // namespace npu::onednn
