// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "npu/support/json.hpp"

namespace npu {

/// The numbers that --assert compares: those of a report and of its "bench", by key.
std::map<std::string, double> report_metrics(const Json& report);

}  // namespace npu
