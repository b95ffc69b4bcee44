// SPDX-License-Identifier: Apache-2.0
// Numbers of reports, which may be infinite or none at all.
#include "runtime/report_numbers.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace npu {

Json json_safe(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::string value_text(double value) {
  const Json json = json_safe(value);
  return json.is_string() ? json.get<std::string>() : json.dump();
}

std::string scientific_text(double value) {
  if (!std::isfinite(value)) return value_text(value);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2e", value);
  return text.data();
}

}  // namespace npu
