// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/device_instance.hpp"
#include "npu/compile/compiler.hpp"

namespace npu {

/// What the partitions of a plan that compile on several threads tell the host, and whether they
/// are to go on. A partition counts by its nodes. There is one for each round of a compile.
class CompileWatch {
 public:
  CompileWatch(const CompileControl& control, const PartitionPlan& plan);

  /// Ends a thread's work: throws Error kFailed once progress has said so, kInfeasible once the
  /// deadline is over.
  void check();
  /// What the backend of a partition gets to call; valid as long as this object.
  CompileHooks hooks(std::size_t partition);
  void finish(std::size_t partition);

 private:
  bool is_late() const;
  bool report(std::size_t partition, double share, const std::string& phase);

  const CompileControl& control_;
  const PartitionPlan& plan_;
  std::mutex mutex_;            // of all below
  std::vector<double> shares_;  // by partition
  double whole_ = 0;            // nodes
  double done_ = 0;
  std::set<std::size_t> finished_;
  std::atomic<bool> stopped_{false};
};

}  // namespace npu
