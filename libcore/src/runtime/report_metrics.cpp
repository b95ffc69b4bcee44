// SPDX-License-Identifier: Apache-2.0
// The metrics of a report of npu-run, of a model or of a plan: every number at its top level or in
// its benchmark. O(keys).
#include "runtime/report_metrics.hpp"

namespace npu {

std::map<std::string, double> report_metrics(const Json& report) {
  std::map<std::string, double> metrics;
  const auto add = [&](const Json& object) {
    for (const auto& [key, value] : object.items()) {
      if (value.is_number()) metrics[key] = value.get<double>();
    }
  };
  add(report);
  if (const Json* bench = find_member(report, "bench")) add(*bench);
  return metrics;
}

}  // namespace npu
