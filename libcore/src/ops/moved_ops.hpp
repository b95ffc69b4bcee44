// SPDX-License-Identifier: Apache-2.0
#pragma once

// Families of ops by name whose results are elements of their operand, or between them.

#include <array>
#include <string_view>

#include "ops/op_name.hpp"

namespace npu {

/// To another size, by nearest, linear or cubic interpolation.
constexpr bool is_resampling(std::string_view op_type) noexcept {
  const std::string_view name = functional_name(op_type);
  return name.starts_with("upsample_") || name.starts_with("_upsample_nearest_exact");
}
/// Cubic interpolation gives numbers beyond those that it is made of.
constexpr bool is_cubic(std::string_view op_type) noexcept {
  return op_type.find("cubic") != std::string_view::npos;
}
/// Padding whose mode, if it has one, is an argument.
constexpr bool is_padding(std::string_view op_type) noexcept {
  const std::string_view name = functional_name(op_type);
  return name == "constant_pad_nd" || name == "pad";
}
/// Ops whose result has elements of their only operand in other places, once, often or not at all.
constexpr bool moves_elements(std::string_view op_type) noexcept {
  constexpr std::array<std::string_view, 14> kNames{"broadcast_to",  "channel_shuffle",
                                                    "expand",        "flip",
                                                    "narrow",        "native_channel_shuffle",
                                                    "pixel_shuffle", "pixel_unshuffle",
                                                    "repeat",        "repeat_interleave",
                                                    "roll",          "select",
                                                    "slice",         "tile"};
  const std::string_view name = functional_name(op_type);
  for (const std::string_view each : kNames) {
    if (each == name) return true;
  }
  return false;
}

}  // namespace npu
