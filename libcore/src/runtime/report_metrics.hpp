// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "npu/support/json.hpp"

namespace npu {

/// What --assert compares: the numbers of a report and of its "bench", by key.
std::map<std::string, double> report_metrics(const Json& report);

}  // namespace npu
