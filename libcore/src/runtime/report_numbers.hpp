// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/support/json.hpp"

namespace npu {

/// A number, or the string "nan", "inf" or "-inf", which JSON cannot express as one.
Json json_safe(double value);
std::string value_text(double value);
/// "1.50e-03".
std::string scientific_text(double value);

}  // namespace npu
