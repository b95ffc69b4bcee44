// SPDX-License-Identifier: Apache-2.0
// Progress of long commands, and the times of their phases. O(phases) for each call.
#include "npu/support/progress.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "npu/support/error.hpp"
#include "npu/support/log.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"

namespace npu {

void report_progress(const ProgressCallback& progress, double done, const std::string& what) {
  if (progress && !progress(done, what)) throw Error(ErrorCode::kIo, "interrupted");
}

void PhaseTimes::add(const std::string& phase, double ms) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return entry.first == phase; });
  if (found == entries_.end()) {
    entries_.emplace_back(phase, ms);
  } else {
    found->second += ms;
  }
}

void PhaseTimes::add(const PhaseTimes& other) {
  for (const auto& [phase, ms] : other.entries()) add(phase, ms);
}

PhaseTimes::Scope::Scope(PhaseTimes& times, std::string phase)
    : times_(times), phase_(std::move(phase)), start_(Clock::now()) {}

PhaseTimes::Scope::~Scope() {
  const double spent_ms = milliseconds_since(start_);
  if (log_wants(LogModule::kGnn, LogLevel::kInfo)) {
    log_text(LogModule::kGnn, LogLevel::kInfo, phase_, spent_ms);
  }
  times_.add(phase_, spent_ms);
}

std::string format_phase_times(const PhaseTimes& times) {
  double sum = 0;
  for (const auto& [phase, ms] : times.entries()) sum += ms;
  std::vector<std::vector<std::string>> rows{{"phase", ">ms", ">share"}};
  for (const auto& [phase, ms] : times.entries()) {
    rows.push_back({phase, fixed_text(ms, 1), fixed_text(sum > 0 ? 100 * ms / sum : 0, 1) + " %"});
  }
  rows.push_back({"sum", fixed_text(sum, 1), ""});
  return table_text(rows) + "peak memory " + bytes_text(static_cast<double>(peak_rss_bytes())) +
         "\n";
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace npu
