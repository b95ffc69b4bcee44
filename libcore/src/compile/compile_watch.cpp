// SPDX-License-Identifier: Apache-2.0
// Adds up what partitions that compile at the same time report, and stops all of them. O(1) for
// each report.
#include "compile/compile_watch.hpp"

#include <algorithm>

#include "support/deadline.hpp"
#include "support/elapsed.hpp"

namespace npu {

CompileWatch::CompileWatch(const CompileControl& control, const PartitionPlan& plan)
    : control_(control), plan_(plan), shares_(plan.partitions.size(), 0) {
  for (const Partition& partition : plan.partitions) {
    whole_ += static_cast<double>(std::max<std::size_t>(partition.nodes.size(), 1));
  }
}

bool CompileWatch::is_late() const {
  return control_.deadline && Clock::now() >= *control_.deadline;
}

void CompileWatch::check() {
  if (stopped_) throw Error(ErrorCode::kFailed, "the compile was stopped");
  if (!is_late()) return;
  const std::lock_guard lock(mutex_);
  throw Error(ErrorCode::kInfeasible, "the deadline is over: " + std::to_string(finished_.size()) +
                                          " of " + std::to_string(shares_.size()) +
                                          " partitions are compiled; allow more with --deadline");
}

CompileHooks CompileWatch::hooks(std::size_t partition) {
  CompileHooks hooks;
  hooks.blob_folder = control_.blob_folder;
  hooks.deadline_ns = deadline_ns(control_.deadline);
  if (!control_.progress && !control_.deadline) return hooks;
  hooks.progress = [this, partition](std::uint64_t done, std::uint64_t total, const char* phase) {
    const double share =
        total == 0 ? 0 : static_cast<double>(std::min(done, total)) / static_cast<double>(total);
    // The last part, which has no progress of its own, is not nothing.
    constexpr double kMost = 0.99;
    return report(partition, kMost * share, phase == nullptr ? "" : phase);
  };
  return hooks;
}

void CompileWatch::finish(std::size_t partition) {
  {
    const std::lock_guard lock(mutex_);
    finished_.insert(partition);  // again, if it is compiled again
  }
  report(partition, 1, "");
}

bool CompileWatch::report(std::size_t partition, double share, const std::string& phase) {
  if (!control_.progress) return !is_late();
  const std::lock_guard lock(mutex_);
  const Partition& of = plan_.partitions[partition];
  // A phase that begins anew does not make the share of this round go back.
  const double more = std::max(0.0, share - shares_[partition]);
  shares_[partition] += more;
  done_ += more * static_cast<double>(std::max<std::size_t>(of.nodes.size(), 1));
  const std::string what = "partition " + std::to_string(partition) + " of " +
                           std::to_string(shares_.size()) + " on " + of.device +
                           (phase.empty() ? "" : ": " + phase);
  if (!control_.progress(done_ / std::max(whole_, 1.0), what)) stopped_ = true;
  return !stopped_ && !is_late();
}

}  // namespace npu
