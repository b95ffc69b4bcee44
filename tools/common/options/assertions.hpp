// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace npu::cli {

/// Named numbers that --assert compares.
using Metrics = std::map<std::string, double>;

/// Throws Error kUsage for a text that is not "METRIC OP VALUE".
void check_assertion(const std::string& text);

/// Whether all hold; `complain` gets a line for each that does not. Throws Error kUsage for one
/// that names a metric that there is not.
bool assertions_hold(const std::vector<std::string>& texts, const Metrics& metrics,
                     const std::function<void(const std::string&)>& complain);

}  // namespace npu::cli
